/* Products of pixels and channels, see mcud_dot_vector_s8.h: one function for all kernels of a program. */
#ifndef MCUD_PIXELS_S8_H
#define MCUD_PIXELS_S8_H

#include "mcud_dot_vector_s8.h"

/* Multiplies `count` pixels x[depth], `step` bytes apart, to y[count][channels], whose pixels are `pitch` apart. */
void mcud_vector_pixels(const mcud_vector_channels *to, const int8_t *x, int32_t step, int32_t count, int8_t *y);

#endif
