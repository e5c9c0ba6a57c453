/* Detections of a wake word, from the probabilities that its network computes.
 *
 * A wake word is detected if the mean of the last probabilities is above the cut-off. After a reset and after each
 * detection, a number of rows of features with probabilities below the cut-off must pass first. A probability holds
 * until the next one. The component micro_wake_word of ESPHome does the same.
 */
#ifndef MCUD_DETECTOR_H
#define MCUD_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint8_t *probabilities; /* [window], of the caller */
    uint8_t window;         /* probabilities of a mean, 1 to 255 */
    uint8_t cutoff;         /* 255 stands for a probability of 1 */
    uint8_t rows;           /* rows of features from one probability to the next, 1 to 255 */
    uint8_t pause;          /* rows below the cut-off before a detection; ESPHome: 100 */
    /* Below: private, set by the functions. */
    uint8_t newest;
    uint8_t waits;
    bool unread;
} mcud_detector;

/* Forgets all probabilities, and waits for the pause. Call it before the first probability. */
void mcud_detector_reset(mcud_detector *detector);

/* Adds a probability, 0 to 255. Returns whether the wake word was detected; then it waits for the pause. */
bool mcud_detector_add(mcud_detector *detector, uint8_t probability);

/* The parts of mcud_detector_add, for an application that joins detectors in each row of features. */

/* Takes a row, with the probability that it brings, or 0 if it brings none. */
void mcud_detector_row(mcud_detector *detector, const uint8_t *probability);

/* Returns whether the newest probability makes a detection; false at the second call for the same probability. After a
 * detection that counts, call mcud_detector_reset. */
bool mcud_detector_hears(mcud_detector *detector);

/* Returns whether the mean is above the cut-off, without any pause. */
bool mcud_detector_is_above(const mcud_detector *detector);

#ifdef __cplusplus
}
#endif

#endif
