"""Headers of three Arduino cores, of a few lines: their microphones play standard input."""

from __future__ import annotations

ARDUINO = """
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#define INPUT 0
struct Port {
  void begin(unsigned long) {}
  void println(const char *text) { puts(text); }
};
extern Port Serial;
inline void delay(unsigned long) { exit(1); }
/* Up to `most` samples of standard input; ends the program after the last one. */
inline size_t stub_samples(int16_t *samples, size_t most)
{
  const size_t count = fread(samples, sizeof(int16_t), most, stdin);
  if (count == 0) exit(0);
  return count;
}
"""

ESP32 = """
#pragma once
#include <Arduino.h>
enum { I2S_NUM_0, I2S_PIN_NO_CHANGE = -1, ESP_OK = 0, portMAX_DELAY = 0x7fffffff };
typedef int i2s_port_t;
enum i2s_mode_t { I2S_MODE_MASTER = 1, I2S_MODE_RX = 8 };
enum i2s_bits_per_sample_t { I2S_BITS_PER_SAMPLE_32BIT = 32 };
enum i2s_channel_fmt_t { I2S_CHANNEL_FMT_ONLY_LEFT = 4 };
enum i2s_comm_format_t { I2S_COMM_FORMAT_STAND_I2S = 1 };
struct i2s_config_t {
  i2s_mode_t mode; uint32_t sample_rate; i2s_bits_per_sample_t bits_per_sample;
  i2s_channel_fmt_t channel_format;
  i2s_comm_format_t communication_format; int intr_alloc_flags; int dma_buf_count; int dma_buf_len;
};
struct i2s_pin_config_t { int mck_io_num, bck_io_num, ws_io_num, data_out_num, data_in_num; };
inline int i2s_driver_install(i2s_port_t, const i2s_config_t *config, int, void *)
{
  return config->sample_rate == 16000 ? ESP_OK : -1;
}
inline int i2s_set_pin(i2s_port_t, const i2s_pin_config_t *) { return ESP_OK; }
inline int i2s_read(i2s_port_t, void *words, size_t bytes, size_t *read, int)
{
  int16_t samples[1024];
  const size_t count = stub_samples(samples, bytes / 4);
  for (size_t i = 0; i < count; i++) static_cast<int32_t *>(words)[i] = samples[i] * 65536 + 1234;
  *read = 4 * count;
  return ESP_OK;
}
"""

RP2040 = """
#pragma once
#include <Arduino.h>
class I2S {
 public:
  explicit I2S(int) {}
  bool setBCLK(int) { return true; }
  bool setDATA(int) { return true; }
  bool setBitsPerSample(int bits) { return bits == 32; }
  bool begin(long rate) { return rate == 16000; }
  bool read32(int32_t *left, int32_t *right)
  {
    int16_t sample;
    stub_samples(&sample, 1);
    *left = sample * 65536;
    *right = 0;
    return true;
  }
};
"""

NRF52 = """
#pragma once
#include <Arduino.h>
struct Pdm {
  int calls = 0;
  void setGain(int) {}
  int begin(int channels, long rate) { return channels == 1 && rate == 16000; }
  int available() { return this->calls++ % 3 == 0 ? 0 : 256; }
  int read(void *samples, size_t bytes)
  {
    return 2 * static_cast<int>(stub_samples(static_cast<int16_t *>(samples), bytes / 2));
  }
};
extern Pdm PDM;
"""

CORES = {
    "ARDUINO_ARCH_ESP32": {"driver/i2s.h": ESP32},
    "ARDUINO_ARCH_RP2040": {"I2S.h": RP2040},
    "ARDUINO_ARCH_NRF52840": {"PDM.h": NRF52},
}
"""By macro of a core, its headers by name."""

MAIN = """
#include <Arduino.h>
#if defined(ARDUINO_ARCH_NRF52840)
#include <PDM.h>
Pdm PDM;
#endif
Port Serial;
void setup();
void loop();
int main()
{
  setup();
  for (;;) loop();
}
"""
