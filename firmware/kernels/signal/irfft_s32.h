/* The inverse Fourier transform to real numbers; numbers and rounding are those of mcud_fft_s32.h.
 *
 * in[0]    int32_t [rows][1][2 * (points + 1)], real and imaginary parts alternating; the imaginary parts of the
 *          first and the last point are not read
 * out      int32_t [rows][1][2 * points]
 */
#ifndef MCUD_IRFFT_S32_H
#define MCUD_IRFFT_S32_H

#include "mcud.h"

typedef struct {
    const int32_t *twiddles;  /* [points][2] */
    const int32_t *unpack;    /* [points / 2][2] */
    const uint16_t *radices; /* [stages], each 2 to 5; their product is points */
    int32_t points;
    int32_t stages; /* 1..16 */
} mcud_irfft_s32_params;

mcud_kernel mcud_irfft_s32;

#endif
