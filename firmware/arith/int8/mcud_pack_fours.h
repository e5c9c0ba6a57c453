/* Activations as the weights of mcud_dot_vector_s8.h. */
#ifndef MCUD_PACK_FOURS_H
#define MCUD_PACK_FOURS_H

#include "mcud_vector.h"

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include <arm_mve.h>
#endif

/* line[channels] -> the bytes of their weights, `to` being that of channel 0: channels 0 and 2 lie side by side, then,
 * `pair` bytes later, 1 and 3, and `record` bytes after these the next four. */
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
