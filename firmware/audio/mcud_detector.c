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

bool mcud_detector_is_above(const mcud_detector *detector)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < detector->window; i++) {
        sum += detector->probabilities[i];
    }
    return sum > (uint32_t)detector->cutoff * detector->window;
}

void mcud_detector_row(mcud_detector *detector, const uint8_t *probability)
{
    if (probability != 0) {
        detector->newest = (uint8_t)(detector->newest + 1u < detector->window ? detector->newest + 1u : 0u);
        detector->probabilities[detector->newest] = *probability;
        detector->unread = true;
    }
    if (detector->waits > 0 && detector->probabilities[detector->newest] < detector->cutoff) {
        detector->waits--;
    }
}

bool mcud_detector_hears(mcud_detector *detector)
{
    if (!detector->unread || detector->waits > 0) {
        return false;
    }
    detector->unread = false;
    return mcud_detector_is_above(detector);
}

bool mcud_detector_add(mcud_detector *detector, uint8_t probability)
{
    bool detected = false;
    for (uint32_t row = 1; row <= detector->rows; row++) {
        mcud_detector_row(detector, row == detector->rows ? &probability : 0);
        if (mcud_detector_hears(detector)) {
            mcud_detector_reset(detector);
            detected = true;
        }
    }
    return detected;
}
