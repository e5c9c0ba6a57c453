/* mcud_vector.h in portable C: copies and sums of bytes. */
#ifndef MCUD_VECTOR_BYTES_C_H
#define MCUD_VECTOR_BYTES_C_H

#include <string.h>

#include "mcud_quant.h"

/* to[bytes] = from[bytes] */
static inline void mcud_vector_copy(void *to, const void *from, int32_t bytes)
{
    memcpy(to, from, (size_t)bytes);
}

/* Copies to[windows][rows][bytes] from memory + offsets[rows]; windows are `step` bytes apart. No count is 0. */
static inline void mcud_vector_gather(int8_t *to, const uint8_t *memory, int32_t step, int32_t windows,
                                      const uint32_t *offsets, int32_t rows, int32_t bytes)
{
    for (; windows > 0; windows--, memory += step) {
        for (int32_t r = 0; r < rows; r++, to += bytes) {
            memcpy(to, memory + offsets[r], (size_t)bytes);
        }
    }
}

/* to[bytes], all `value` */
static inline void mcud_vector_fill(void *to, int32_t value, int32_t bytes)
{
    memset(to, value, (size_t)bytes);
}

/* out[count] = a[count] * a_multiplier + b[count] * b_multiplier, requantised as add_s8.h states. */
static inline void mcud_vector_add(const int8_t *a, const int8_t *b, int8_t *out, int32_t count,
                                   const mcud_sum_quant *addition)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t sum = a[i] * addition->a_multiplier + b[i] * addition->b_multiplier + addition->constant;
        const int32_t result = addition->zero_point + mcud_round_even(sum, addition->shift);
        out[i] = (int8_t)mcud_clamp(result, INT8_MIN, INT8_MAX);
    }
}

#endif
