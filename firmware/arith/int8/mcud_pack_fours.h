/* Packs activations as weights of mcud_dot_vector_s8.h. */
#ifndef MCUD_PACK_FOURS_H
#define MCUD_PACK_FOURS_H

#include "mcud_vector.h"

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include <arm_mve.h>
#endif

/* Writes line[channels] to their places among the weights; `to` is the place of channel 0. Channel 2 is 16 bytes after
 * channel 0, channels 1 and 3 are `pair` bytes after 0 and 2, and the next four channels `record` bytes later. */
static inline void mcud_scatter_channels(int8_t *to, const int8_t *line, int32_t channels, int32_t pair, int32_t record)
{
#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
    const uint16x8_t index = vidupq_n_u16(0, 1);
    uint16x8_t places = vmulq_n_u16(vandq_u16(index, vdupq_n_u16(1)), (uint16_t)pair);
    places = vmlaq_n_u16(places, vandq_u16(vshrq_n_u16(index, 1), vdupq_n_u16(1)), 16);
    places = vmlaq_n_u16(places, vshrq_n_u16(index, 2), (uint16_t)record);
    for (; channels > 0; channels -= 8, line += 8, to += 2 * record) {
        const mve_pred16_t some = vctp16q((uint32_t)channels);
        vstrbq_scatter_offset_p_s16(to, places, vldrbq_z_s16(line, some), some);
    }
#else
    for (int32_t c = 0; c < channels; c++) {
        to[c / 4 * record + c % 2 * pair + c / 2 % 2 * 16] = line[c];
    }
#endif
}

#endif
