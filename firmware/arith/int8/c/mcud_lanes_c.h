/* mcud_lanes_s8.h in portable C. */
#ifndef MCUD_LANES_C_H
#define MCUD_LANES_C_H

/* Multiplies `count` pixels x[depth], 1 to 3, to y[count][channels], whose pixels are `pitch` apart. */
static inline void mcud_lanes_pixels(const mcud_vector_channels *to, const int8_t *const x[3], int32_t count,
                                     int8_t *y)
{
    const int32_t *factors = to->records + to->channels;
    for (int32_t p = 0; p < count; p++, y += to->pitch) {
        const int8_t *w = (const int8_t *)(factors + to->channels * MCUD_FACTORS);
        for (int32_t k = 0; k < to->channels; k++, w++) {
            int32_t sum = to->records[k];
            for (int32_t i = 0; i < to->depth; i++) {
                sum += x[p][i] * w[i * to->channels];
            }
            y[k] = MCUD_RESULT_S8(sum, factors + k, to->channels, &to->finish);
        }
    }
}

/* sums[channels] += x[values] . w[values][channels] */
static inline void mcud_lanes_add(const mcud_vector_channels *to, const int8_t *x, int32_t values, const int8_t *w,
                                  int32_t *sums)
{
    for (int32_t i = 0; i < values; i++) {
        for (int32_t k = 0; k < to->channels; k++) {
            sums[k] += x[i] * *w++;
        }
    }
}

/* Requantises sums[channels] to y[channels]. */
static inline void mcud_lanes_finish(const mcud_vector_channels *to, const int32_t *sums, int8_t *y)
{
    for (int32_t k = 0; k < to->channels; k++) {
        y[k] = MCUD_RESULT_S8(sums[k], to->records + to->channels + k, to->channels, &to->finish);
    }
}

/* Depthwise: multiplies the first windows->channels channels of a record, each with one input channel, to
 * y[windows][channels]. */
static inline void mcud_lanes_taps(const mcud_windows_alike *windows, const mcud_lanes_depthwise *by, int8_t *y)
{
    const int32_t *factors = by->record + by->lanes;
    int32_t at = windows->at;
    for (int32_t left = windows->count; left > 0; left--, at += windows->step) {
        const int8_t *w = (const int8_t *)(factors + by->lanes * MCUD_FACTORS);
        for (int32_t c = 0; c < windows->channels; c++, w++, y++) {
            int32_t sum = by->record[c];
            for (int32_t t = 0; t < windows->tap_count; t++) {
                sum += windows->taps[t][at + c] * w[t * by->lanes];
            }
            *y = MCUD_RESULT_S8(sum, factors + c, by->lanes, &by->finish);
        }
    }
}

#endif
