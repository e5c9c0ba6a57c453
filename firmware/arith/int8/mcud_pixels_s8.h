/* Pixels by channels, see mcud_dot_vector_s8.h: one function for all kernels of a program. */
#ifndef MCUD_PIXELS_S8_H
#define MCUD_PIXELS_S8_H

#include "mcud_dot_vector_s8.h"

/* `count` pixels of x[depth] each, `step` bytes apart -> y[count][channels], `pitch` apart */
void mcud_vector_pixels(const mcud_vector_channels *to, const int8_t *x, int32_t step, int32_t count, int8_t *y);

#endif
