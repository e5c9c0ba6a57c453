/* An I2S microphone on an RP2040, by the Arduino core of Earle Philhower. Word select is the pin after the clock. */
#if defined(ARDUINO_ARCH_RP2040)

#include "microphone.h"

#include <I2S.h>

namespace {

constexpr int PIN_CLOCK = 2, PIN_DATA = 4;
I2S i2s(INPUT);

}  // namespace

bool microphone_begin()
{
    i2s.setBCLK(PIN_CLOCK);
    i2s.setDATA(PIN_DATA);
    i2s.setBitsPerSample(32);
    return i2s.begin(SAMPLE_RATE);
}

size_t microphone_read(int16_t *samples, size_t most)
{
    size_t count = 0;
    int32_t left = 0, right = 0;
    while (count < most && i2s.read32(&left, &right)) {
        samples[count++] = static_cast<int16_t>(left >> 16);
    }
    return count;
}

#endif
