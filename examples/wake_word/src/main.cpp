/* Hears a wake word of ESPHome's micro_wake_word, from the samples of a microphone, and prints a line. */
#include <Arduino.h>

#include <mcud_detector.h>
#include <okay_nabu.h>
#include <okay_nabu_selftest.h>

#include "microphone.h"

namespace {

/* Of the manifest okay_nabu.json. */
constexpr uint8_t CUTOFF = 216; /* probability_cutoff 0.85, of 255 */
constexpr uint8_t WINDOW = 5;   /* sliding_window_size */
constexpr uint32_t HOP = 160;   /* samples of feature_step_size, 10 ms */

uint8_t probabilities[WINDOW];
mcud_detector detector;
size_t filled = 0;

[[noreturn]] void stop(const char *reason)
{
    for (;;) {
        Serial.println(reason);
        delay(1000);
    }
}

}  // namespace

void setup()
{
    Serial.begin(115200);
    if (okay_nabu_selftest() != 0) {
        stop("self-test failed");
    }
    detector.probabilities = probabilities;
    detector.window = WINDOW;
    detector.cutoff = CUTOFF;
    detector.rows = OKAY_NABU_INPUT_COUNT / HOP;
    detector.pause = 100;
    mcud_detector_reset(&detector);
    if (!microphone_begin()) {
        stop("no microphone");
    }
    Serial.println("listening");
}

void loop()
{
    /* Samples go where the model reads them; between two runs this memory is free. */
    filled += microphone_read(okay_nabu_input() + filled, OKAY_NABU_INPUT_COUNT - filled);
    if (filled < OKAY_NABU_INPUT_COUNT) {
        return;
    }
    filled = 0;
    okay_nabu_run();
    const uint8_t probability = static_cast<uint8_t>(okay_nabu_output()[0] + 128);
    if (mcud_detector_add(&detector, probability)) {
        Serial.println("heard: okay nabu");
    }
}
