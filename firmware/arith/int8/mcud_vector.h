/* Vectors of 16 bytes, as the M-profile Vector Extension (Helium) has them: what the kernels named _mve are made of.
 * RISC-V's vectors have the same copies and sums.
 *
 * The portable twin has the same functions and gives the same bits, so that these kernels run on the host as well;
 * other cores are better served by the kernels without vectors.
 */
#ifndef MCUD_VECTOR_H
#define MCUD_VECTOR_H

#include "mcud_params.h"
#include "mcud_rvv.h"
#include "mcud_simd.h"

/* Windows side by side in the input, whose taps lie alike. */
typedef struct {
    const int8_t *const *taps; /* of the first window, less `at` bytes */
    int32_t tap_count;
    int32_t at;
    int32_t step;     /* bytes from a window to the next one */
    int32_t count;    /* 1 or more */
    int32_t channels; /* of the pixels of a window */
} mcud_windows_alike;

/* Without optimisation there are too few registers for the blocks. */
#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include "mcud_vector_mve.h"
#else
#include "mcud_vector_c.h"
#if MCUD_RVV
#include "mcud_vector_rvv.h"
#else
#include "mcud_vector_bytes_c.h"
#endif

/* See mcud_vector_mve.h: on other cores, sums without ties take no fewer instructions. */
static inline void mcud_vector_add_untied(const int8_t *a, const int8_t *b, int8_t *out, int32_t count,
                                          const mcud_sum_quant *addition)
{
    mcud_vector_add(a, b, out, count, addition);
}
#endif

#endif
