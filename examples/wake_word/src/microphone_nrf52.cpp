/* The PDM microphone of an Arduino Nano 33 BLE Sense. */
#if defined(ARDUINO_ARCH_NRF52840)

#include "microphone.h"

#include <PDM.h>

bool microphone_begin()
{
    PDM.setGain(30);
    return PDM.begin(1, SAMPLE_RATE) != 0;
}

size_t microphone_read(int16_t *samples, size_t most)
{
    int bytes = PDM.available();
    while (bytes < static_cast<int>(sizeof(int16_t))) {
        bytes = PDM.available();
    }
    const size_t there = static_cast<size_t>(bytes) / sizeof(int16_t);
    const size_t wanted = there < most ? there : most;
    const int read = PDM.read(samples, wanted * sizeof(int16_t));
    return read > 0 ? static_cast<size_t>(read) / sizeof(int16_t) : 0;
}

#endif
