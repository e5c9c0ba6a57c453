/* mcud_widen_s8.h in portable C. */
#ifndef MCUD_WIDEN_C_H
#define MCUD_WIDEN_C_H

/* Widens line[length] to a channel's weights; `length` is a multiple of four. Returns their sum. */
static inline int32_t mcud_widen_fours(const int8_t *line, int32_t length, int32_t zero_point, int32_t *weights)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < length; i += 4) {
        const int8_t *const from[4] = {line, line + 1, line + 2, line + 3};
        sum += mcud_widen_four(from, i, 4, zero_point, weights + i);
    }
    return sum;
}

/* Widens four channels at a time on cores that can; returns the first channel that remains. */
static inline int32_t mcud_widen_columns(const mcud_widened *to, int32_t k, const int8_t *const lines[4], int32_t count)
{
    (void)to, (void)k, (void)lines, (void)count;
    return 0;
}

#endif
