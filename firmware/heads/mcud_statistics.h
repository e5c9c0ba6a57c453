/* Mean and standard deviation of each feature over the inputs of a device. They map the device's features to the
 * distribution of training.
 *
 * A sensor that drifts shifts and scales features, but a head has learned their old distribution. With the mean and
 * the standard deviation of each feature over recent inputs, without labels, a feature f becomes
 *
 *     (f - mean) / deviation * deviation in training + mean in training
 *
 * rounded to int8. The deviation counts as 1 at least.
 */
#ifndef MCUD_STATISTICS_H
#define MCUD_STATISTICS_H

#include <stdint.h>

#include "mcud_head.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    float *means;                     /* [features], of the inputs */
    float *squares;                   /* [features], sums of squared distances from the mean */
    uint32_t *count;                  /* [1], of the inputs */
    const float *training_means;      /* [features] */
    const float *training_deviations; /* [features] */
    uint32_t features;
} mcud_statistics;

/* Adds the features of an input. */
void mcud_statistics_observe(const mcud_statistics *statistics, const int8_t *features);

/* Writes the features as they would have been in training. */
void mcud_statistics_apply(const mcud_statistics *statistics, const int8_t *features, int8_t *to);

/* Forgets all inputs. */
void mcud_statistics_reset(const mcud_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
