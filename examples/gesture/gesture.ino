/* Prints the gestures that a board with an accelerometer makes. README.md says how to make the library `gestures`. */
#include <gestures.h>
#include <gestures_selftest.h>

#include "accelerometer.h"
#include "debounce.h"

const char *const CLASSES[GESTURES_OUTPUT_COUNT] = {"rest", "shake", "circle", "tap", "tilt", "swing"};
const uint32_t PERIOD_MS = 20; /* 50 samples a second, as in train.py */
const int8_t SURE = 25;        /* a probability of 0.6, as the output states it: 0.6 * 256 - 128 */

int8_t rows[GESTURES_INPUT_COUNT]; /* new samples, which the next run takes */
uint32_t filled = 0;
uint32_t due = 0;
Debounce debounce;

void stop(const char *reason)
{
    for (;;) {
        Serial.println(reason);
        delay(1000);
    }
}

/* The class of the greatest probability, or -1 if none is sure. */
int leading_class()
{
    const int8_t *probabilities = gestures_output();
    int best = 0;
    for (int i = 1; i < (int)GESTURES_OUTPUT_COUNT; i++) {
        if (probabilities[i] > probabilities[best]) {
            best = i;
        }
    }
    return probabilities[best] >= SURE ? best : -1;
}

void setup()
{
    Serial.begin(115200);
    if (gestures_selftest() != 0) {
        stop("self-test failed");
    }
    gestures_reset(); /* the self-test left its window */
    if (!accelerometer_begin()) {
        stop("no accelerometer");
    }
    due = millis();
}

void loop()
{
    if ((int32_t)(millis() - due) < 0) {
        return;
    }
    due += PERIOD_MS;
    float g[3];
    if (!accelerometer_read(g)) {
        return;
    }
    for (int axis = 0; axis < 3; axis++) {
        rows[filled++] = gestures_quantize_input(g[axis]);
    }
    if (filled < GESTURES_INPUT_COUNT) {
        return;
    }
    filled = 0;
    if (gestures_push(rows) != 0) {
        return; /* the window of 2 s is not full */
    }
    const int gesture = debounce.add(leading_class());
    if (gesture > 0) {
        Serial.println(CLASSES[gesture]);
    }
}
