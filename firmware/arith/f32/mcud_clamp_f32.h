/* The clip that float kernels end with. */
#ifndef MCUD_CLAMP_F32_H
#define MCUD_CLAMP_F32_H

/* low <= high: infinities where there is no clip. A NaN stays. */
static inline float mcud_clamp_f32(float value, float low, float high)
{
    return value < low ? low : (value > high ? high : value);
}

#endif
