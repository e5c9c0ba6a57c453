/* The Fourier transform of real numbers; numbers and rounding are those of mcud_fft_f32.h.
 *
 * in[0]    float [rows][1][count], count <= 2 * points; zeros follow
 * out      float [rows][1][2 * (points + 1)], real and imaginary parts alternating
 */
#ifndef MCUD_RFFT_F32_H
#define MCUD_RFFT_F32_H

#include "mcud.h"

typedef struct {
    const float *twiddles;  /* [points][2] */
    const float *unpack;    /* [points / 2][2] */
    const uint16_t *radices; /* [stages], each 2 to 5; their product is points */
    int32_t points;
    int32_t stages; /* 1..16 */
    int32_t count;
} mcud_rfft_f32_params;

mcud_kernel mcud_rfft_f32;

#endif
