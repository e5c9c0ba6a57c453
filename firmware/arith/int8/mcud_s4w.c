#include "mcud_s4w.h"

#include <string.h>

#include "mcud_compiler.h"

/* What blocks compute: whole records of four channels. */
typedef struct {
    int32_t zero_point;
    int32_t pitch; /* from a pixel's results to the next one's */
    int32_t channels;
    int32_t pairs;   /* of values of a pixel */
    int32_t less[2]; /* -8 times the sum of each pixel, where blocks need it */
    int32_t left;
} mcud_s4w_block;

#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__) && MCUD_BLOCKS
#include "mcud_s4w_dsp.h"
#else
#include "mcud_s4w_c.h"
#endif

void mcud_multiply_s4w(const mcud_channels_s8 *to, const int16_t *x, int32_t pixels, int8_t *y)
{
    const int32_t whole = pixels == 2 ? to->channels & ~3 : 0;
    mcud_s4w_block by = {to->finish.zero_point, to->finish.pitch, whole, 2 * to->groups, {0, 0}, to->finish.left};
    mcud_s4w_sum_pairs(x, &by);
    if (whole > 0) {
        mcud_s4w_2x4(x, to->records, y, &by);
    }
    by.pitch = by.channels = 4;
    for (int32_t k = whole; k < to->channels; k += 4) { /* the output has no room for all results */
        int8_t results[8];
        mcud_s4w_2x4(x, to->records + mcud_words_s4w(k, to->groups), results, &by);
        for (int32_t p = 0; p < pixels; p++) {
            memcpy(y + p * to->finish.pitch + k, results + 4 * p, k + 4 > to->channels ? to->channels & 3 : 4);
        }
    }
}

const int32_t *mcud_pixel_s4w(const mcud_finish_s8 *to, const int32_t *record, int32_t channels, const int8_t *x,
                              int32_t values, int8_t *y)
{
    mcud_s4w_block by = {to->zero_point, 0, channels & ~3, values / 2, {0, 0}, to->left};
    mcud_s4w_sum_values(x, &by);
    if (by.channels > 0) {
        record = mcud_s4w_1x4(x, record, y, &by);
    }
    if (by.channels < channels) {
        int8_t results[4];
        y += by.channels;
        by.channels = 4;
        record = mcud_s4w_1x4(x, record, results, &by);
        memcpy(y, results, channels & 3);
    }
    return record;
}
