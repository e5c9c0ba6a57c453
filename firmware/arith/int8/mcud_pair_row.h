/* Rows of the input that depthwise kernels expand in pairs, and the padding around them. */
#ifndef MCUD_PAIR_ROW_H
#define MCUD_PAIR_ROW_H

#include <stdint.h>

/* A row of the input; `step` to its next column is 0 in the padding, whose values are all the same. */
typedef struct {
    const int8_t *at;
    int32_t step;
} mcud_pair_row;

static inline int32_t mcud_between(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : (value > high ? high : value);
}

/* Writes padding to both halves of the words [from, end): by halves, as portable C reads them. */
static inline void mcud_fill_pairs(int32_t *from, const int32_t *end, int32_t zero_point)
{
    int16_t *half = (int16_t *)(void *)from;
    for (const int16_t *const last = (const int16_t *)(const void *)end; half < last; half += 2) {
        half[0] = (int16_t)zero_point;
        half[1] = (int16_t)zero_point;
    }
}

/* Loads up to four channels; reads no bytes after them. */
static inline int32_t mcud_load_some(const int8_t *from, int32_t channels)
{
    uint32_t word = 0;
    for (int32_t i = 0; i < channels; i++) {
        word |= (uint32_t)(uint8_t)from[i] << (8 * i);
    }
    return (int32_t)word;
}

#endif
