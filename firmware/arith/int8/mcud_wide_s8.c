#include "mcud_wide_s8.h"

#include "mcud_compiler.h"

/* Rare cases are not inlined in the function that is called for every block. */
#if defined(__GNUC__)
#define NOT_INLINED static __attribute__((noinline))
#else
#define NOT_INLINED static
#endif

/* The functions of these headers compute whole records of two channels. For one pixel they compute two records at a
 * time, and `step` is the number of bytes from a record to the next one. */
#if defined(__ARM_FEATURE_DSP) && MCUD_BLOCKS
#include "mcud_wide_s8_dsp.h"
#else
#include "mcud_wide_s8_c.h"
#endif

static inline void all_pixels(const mcud_wide_s8 *by, const int16_t *x, int32_t pixels, int8_t *y)
{
    if (pixels == 4) {
        mcud_wide_4x2(x, by->records, y, by);
    } else if (pixels == 3) {
        mcud_wide_3x2(x, by->records, y, by, 1);
    } else {
        mcud_wide_1x4(x, by->records, y, by);
    }
}

/* mcud_wide_multiply for one pixel, or for channels that do not fill the last record. */
NOT_INLINED void multiply_rest(const mcud_wide_s8 *by, const int16_t *x, int32_t pixels, int8_t *y)
{
    const int32_t together = pixels == 1 ? 4 : 2; /* channels */
    const int32_t rest = by->channels & (together - 1);
    const int32_t record_words = mcud_wide_words(by);
    mcud_wide_s8 part = *by;
    part.channels -= rest;
    part.step = pixels == 1 ? 4 * record_words : by->step;
    if (part.channels > 0) {
        all_pixels(&part, x, pixels, y);
    }
    if (rest == 0) {
        return;
    }
    int8_t results[8]; /* of the last records, which have more channels than the output */
    y += part.channels;
    part.records += part.channels / 2 * record_words;
    part.channels = together;
    part.pitch = 2;
    if (pixels == 1 && rest < 3) { /* a record without a neighbour is used twice */
        part.step = 0;
    }
    all_pixels(&part, x, pixels, results);
    for (int32_t p = 0; p < pixels; p++) {
        for (int32_t i = 0; i < rest; i++) {
            y[p * by->pitch + i] = results[2 * p + i];
        }
    }
}

void mcud_wide_multiply(const mcud_wide_s8 *by, const int16_t *x, int32_t pixels, int8_t *y)
{
    if (pixels == 1 || (by->channels & 1) != 0) {
        for (; pixels > 4; pixels -= 3) {
            multiply_rest(by, x, 3, y);
            x += 3 * by->step / 2;
            y += 3 * by->pitch;
        }
        multiply_rest(by, x, pixels, y);
    } else if (pixels == 4) {
        mcud_wide_4x2(x, by->records, y, by);
    } else {
        mcud_wide_3x2(x, by->records, y, by, pixels / 3);
    }
}
