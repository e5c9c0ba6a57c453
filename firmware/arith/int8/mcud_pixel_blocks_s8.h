/* The code of mcud_pixels_s8.h. A kernel with offsets of pixels defines MCUD_PIXEL_OFFSETS before it includes this
 * file. */
#ifndef MCUD_PIXEL_BLOCKS_S8_H
#define MCUD_PIXEL_BLOCKS_S8_H

#include <stddef.h>

#include "mcud_dot_vector_s8.h"

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__) && MCUD_BLOCKS
#define MCUD_VECTOR_FOURS
#include "mcud_fours_mve.h"
#endif

/* Multiplies one pixel with up to four channels. */
static inline void mcud_vector_four(const mcud_vector_channels *to, const int8_t *x, int32_t offset,
                                    const int32_t *record, int32_t channels, int8_t *y)
{
    int32_t even[2] = {offset, offset};
    int32_t odd[2] = {offset, offset};
    record = mcud_vector_dot_1x2(x, to->depth, record, even);
    record = mcud_vector_dot_1x2(x, to->depth, record, odd);
    for (int32_t i = 0; i < channels; i++) {
        const int32_t sum = (i % 2 == 0 ? even : odd)[i / 2];
        y[i] = MCUD_RESULT_BY_VECTORS(record[i] + sum, record + 4 + i, 4, &to->finish);
    }
}

/* Multiplies pixels singly with all channels. */
MCUD_NOINLINE void mcud_vector_singly(const mcud_vector_channels *to, const int8_t *x, int32_t step, int32_t count,
                                      int8_t *y)
{
    const int32_t words = (int32_t)((uint32_t)(to->depth + 15) / 16 * 16 + 4 + 4 * MCUD_FACTORS); /* of a record */
    for (int32_t p = 0; p < count; p++, x += step, y += to->pitch) {
        const int32_t *record = to->records;
        const int32_t offset = to->offsets != NULL ? to->offsets[p] : 0;
        for (int32_t done = 0; done < to->channels; done += 4, record += words) {
            const int32_t left = to->channels - done;
            mcud_vector_four(to, x, offset, record, left < 4 ? left : 4, y + done);
        }
    }
}

#if defined(MCUD_VECTOR_FOURS)
/* Multiplies pixels with the channels of an incomplete record. */
MCUD_NOINLINE void mcud_vector_last(const mcud_vector_channels *to, const int8_t *x, int32_t step, int32_t count,
                                    int8_t *y)
{
    enum { MOST = 12 };
    const int32_t channels = to->channels % 4;
    const int32_t words = (to->depth + 15) / 16 * 16 + 4 + 4 * MCUD_FACTORS; /* of a record */
    int8_t last[4 * MOST];
    mcud_vector_channels by = *to;
    by.records += to->channels / 4 * words;
    by.channels = 4;
    by.pitch = 4;
    y += to->channels - channels;
    for (; count > 0; count -= MOST, x += MOST * step) {
        const int32_t pixels = count < MOST ? count : MOST;
        mcud_vector_fours(&by, x, step, pixels, last);
        for (const int8_t *from = last; from < last + 4 * pixels; from += 4, y += to->pitch) {
            for (int32_t i = 0; i < channels; i++) {
                y[i] = from[i];
            }
        }
        by.offsets += by.offsets != NULL ? MOST : 0;
    }
}
#endif

/* Multiplies `count` pixels x[depth], `step` bytes apart, to y[count][channels], whose pixels are `pitch` apart. */
static inline void mcud_blocks_of_pixels(const mcud_vector_channels *to, const int8_t *x, int32_t step, int32_t count,
                                         int8_t *y)
{
#if defined(MCUD_VECTOR_FOURS)
    if (to->finish.left == 0) {
        if (to->channels >= 4) {
            mcud_vector_fours(to, x, step, count, y);
        }
        if (to->channels % 4 != 0) {
            mcud_vector_last(to, x, step, count, y);
        }
        return;
    }
#endif
    mcud_vector_singly(to, x, step, count, y);
}

#endif
