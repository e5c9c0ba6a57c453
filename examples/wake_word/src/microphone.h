#pragma once

#include <cstddef>
#include <cstdint>

constexpr uint32_t SAMPLE_RATE = 16000;

/* Starts the microphone; false if it does not answer. */
bool microphone_begin();

/* Waits for new samples and returns their number, at most `most`. */
size_t microphone_read(int16_t *samples, size_t most);
