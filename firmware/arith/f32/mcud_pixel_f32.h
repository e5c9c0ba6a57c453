/* One float32 pixel by all channels: dense layers, the gates of recurrent networks, pixels that are left over. */
#ifndef MCUD_PIXEL_F32_H
#define MCUD_PIXEL_F32_H

#include "mcud_dot_f32.h"

/* x[depth] -> y[channels]; y may be to->bias. */
void mcud_pixel_f32(const mcud_channels_f32 *to, const float *x, float *y);

#endif
