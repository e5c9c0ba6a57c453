#include "mcud_detector.h"

void mcud_detector_reset(mcud_detector *detector)
{
    for (uint32_t i = 0; i < detector->window; i++) {
        detector->probabilities[i] = 0;
    }
    detector->newest = 0;
    detector->waits = detector->pause;
    detector->unread = false;
}

/* Whether the mean is above the cut-off; then the probabilities count no more. */
static bool is_above(mcud_detector *detector)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < detector->window; i++) {
        sum += detector->probabilities[i];
    }
    detector->unread = false;
    if (sum <= (uint32_t)detector->cutoff * detector->window) {
        return false;
    }
    const uint8_t newest = detector->newest;
    mcud_detector_reset(detector);
    detector->newest = newest;
    return true;
}

bool mcud_detector_add(mcud_detector *detector, uint8_t probability)
{
    bool detected = false;
    for (uint32_t row = 1; row <= detector->rows; row++) {
        if (row == detector->rows) {
            detector->newest = (uint8_t)(detector->newest + 1u < detector->window ? detector->newest + 1u : 0u);
            detector->probabilities[detector->newest] = probability;
            detector->unread = true;
        }
        if (detector->waits > 0 && detector->probabilities[detector->newest] < detector->cutoff) {
            detector->waits--;
        }
        if (detector->unread && detector->waits == 0 && is_above(detector)) {
            detected = true;
        }
    }
    return detected;
}
