#include "mcud_wide_s8.h"

#include "mcud_compiler.h"

/* A block of pixels and all channels of some records. */
typedef struct {
    int32_t zero_point;
    int32_t pitch;
    int32_t channels; /* a multiple of two, of one pixel of four */
    int32_t pairs;
    int32_t step; /* bytes: of three pixels from one to the next; of one from a record to its neighbour */
} mcud_wide_block;

#if defined(__ARM_FEATURE_DSP) && MCUD_BLOCKS
#include "mcud_wide_s8_dsp.h"
#else
#include "mcud_wide_s8_c.h"
#endif

static void all_pixels(const mcud_wide_block *block, const int16_t *x, int32_t pixels, const int32_t *record,
                       int8_t *y)
{
    if (pixels == 4) {
        mcud_wide_4x2(x, record, y, block);
    } else {
        mcud_wide_3x2(x, record, y, block);
    }
}

void mcud_wide_multiply(const mcud_wide_s8 *by, const int16_t *x, int32_t pixels, int8_t *y)
{
    const int32_t record_words = 4 + 2 * by->pairs;
    const int32_t together = pixels == 1 ? 4 : 2; /* channels */
    const int32_t rest = by->channels & (together - 1);
    const int32_t channels = by->channels - rest;
    const int32_t step = pixels == 1 ? record_words : by->step;
    mcud_wide_block block = {by->zero_point, by->pitch, channels, by->pairs, step * 4};
    const int32_t *const last = by->records + channels / 2 * record_words;
    int8_t results[8]; /* of the last records, which have more channels than there are */
    if (pixels > 1) {
        if (channels > 0) {
            all_pixels(&block, x, pixels, by->records, y);
        }
        if (rest > 0) {
            block.channels = block.pitch = 2;
            all_pixels(&block, x, pixels, last, results);
        }
    } else {
        if (channels > 0) {
            mcud_wide_1x4(x, by->records, y, &block);
        }
        if (rest > 0) {
            block.channels = 4;
            if (rest < 3) { /* a record without a neighbour takes itself */
                block.step = 0;
            }
            mcud_wide_1x4(x, last, results, &block);
        }
    }
    for (int32_t p = 0; rest > 0 && p < pixels; p++) {
        for (int32_t i = 0; i < rest; i++) {
            y[p * by->pitch + channels + i] = results[2 * p + i];
        }
    }
}
