/* The Fourier transform of real numbers; numbers and rounding are those of mcud_fft_s16.h.
 *
 * in[0]    int16_t [rows][1][count], count <= 2 * points; zeros follow
 * out      int16_t [rows][1][2 * (points + 1)], real and imaginary parts alternating
 */
#ifndef MCUD_RFFT_S16_H
#define MCUD_RFFT_S16_H

#include "mcud.h"

typedef struct {
    const int16_t *twiddles;  /* [points][2] */
    const int16_t *unpack;    /* [points / 2][2] */
    const uint16_t *radices; /* [stages], each 2 to 5; their product is points */
    int32_t points;
    int32_t stages; /* 1..16 */
    int32_t count;
} mcud_rfft_s16_params;

mcud_kernel mcud_rfft_s16;

#endif
