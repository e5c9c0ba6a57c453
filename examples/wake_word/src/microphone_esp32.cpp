/* An I2S microphone on an ESP32: 32 bits per sample, of which the upper 16 are used. */
#if defined(ARDUINO_ARCH_ESP32)

#include "microphone.h"

#include <driver/i2s.h>

namespace {

constexpr i2s_port_t PORT = I2S_NUM_0;
constexpr int PIN_CLOCK = 2, PIN_WORD_SELECT = 3, PIN_DATA = 4;
constexpr size_t CHUNK = 160;

}  // namespace

bool microphone_begin()
{
    i2s_config_t config = {};
    config.mode = static_cast<i2s_mode_t>(I2S_MODE_MASTER | I2S_MODE_RX);
    config.sample_rate = SAMPLE_RATE;
    config.bits_per_sample = I2S_BITS_PER_SAMPLE_32BIT;
    config.channel_format = I2S_CHANNEL_FMT_ONLY_LEFT;
    config.communication_format = I2S_COMM_FORMAT_STAND_I2S;
    config.dma_buf_count = 4;
    config.dma_buf_len = 256;
    i2s_pin_config_t pins = {};
    pins.mck_io_num = I2S_PIN_NO_CHANGE;
    pins.bck_io_num = PIN_CLOCK;
    pins.ws_io_num = PIN_WORD_SELECT;
    pins.data_out_num = I2S_PIN_NO_CHANGE;
    pins.data_in_num = PIN_DATA;
    return i2s_driver_install(PORT, &config, 0, nullptr) == ESP_OK && i2s_set_pin(PORT, &pins) == ESP_OK;
}

size_t microphone_read(int16_t *samples, size_t most)
{
    int32_t words[CHUNK];
    const size_t wanted = most < CHUNK ? most : CHUNK;
    size_t bytes = 0;
    i2s_read(PORT, words, wanted * sizeof(int32_t), &bytes, portMAX_DELAY);
    const size_t count = bytes / sizeof(int32_t);
    for (size_t i = 0; i < count; i++) {
        samples[i] = static_cast<int16_t>(words[i] >> 16);
    }
    return count;
}

#endif
