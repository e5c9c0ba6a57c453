/* The inverse Fourier transform to real numbers, divided by 2 * points; numbers and rounding are those of
 * mcud_fft_f32.h.
 *
 * in[0]    float [rows][1][2 * (points + 1)], real and imaginary parts alternating; the imaginary parts of the
 *          first and the last point are not read
 * out      float [rows][1][2 * points]
 */
#ifndef MCUD_IRFFT_F32_H
#define MCUD_IRFFT_F32_H

#include "mcud.h"

typedef struct {
    const float *twiddles;  /* [points][2] */
    const float *unpack;    /* [points / 2][2] */
    const uint16_t *radices; /* [stages], each 2 to 5; their product is points */
    int32_t points;
    int32_t stages; /* 1..16 */
} mcud_irfft_f32_params;

mcud_kernel mcud_irfft_f32;

#endif
