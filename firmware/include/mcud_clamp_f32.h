/* The clip that float kernels end with. */
#ifndef MCUD_CLAMP_F32_H
#define MCUD_CLAMP_F32_H

/* low <= high, both finite: where there is no clip they are the ends of float, so an infinity becomes the
 * largest float of its sign. A NaN stays. */
static inline float mcud_clamp_f32(float value, float low, float high)
{
    return value < low ? low : (value > high ? high : value);
}

#endif
