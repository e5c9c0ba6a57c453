/* mcud_dual_s8.h in portable C. */
#ifndef MCUD_DUAL_C_H
#define MCUD_DUAL_C_H

/* The two halves of a word, as values of 16 bits. */
static inline int32_t mcud_dual_lower(int32_t word)
{
    return (int16_t)(uint16_t)((uint32_t)word & 0xFFFFu);
}

static inline int32_t mcud_dual_upper(int32_t word)
{
    return (int16_t)(uint16_t)((uint32_t)word >> 16);
}

/* The sign-extended lower byte of a half. */
static inline int32_t mcud_dual_byte(int32_t half)
{
    return (int8_t)(uint8_t)((uint32_t)half & 0xFFu);
}

static inline const int32_t *mcud_multiply_dual(const int8_t *x, const int32_t *record, int8_t *y,
                                                const mcud_dual_s8 *by)
{
    const mcud_finish_s8 finish = {by->zero_point, 0, 0};
    const int32_t groups = (int32_t)(by->x_end - x) / 4;
    for (; y < by->y_end; y += MCUD_DUAL_CHANNELS) {
        const int32_t *const weights = record + 8;
        const int32_t *const factors = weights + 8 * groups;
        for (int32_t pair = 0; pair < 4; pair++) {
            uint32_t both = (uint32_t)record[pair];
            uint32_t even = (uint32_t)record[4 + pair];
            for (int32_t i = 0; i < 2 * groups; i++) {
                const int32_t word = weights[4 * i + pair];
                const int32_t lower = mcud_dual_lower(word);
                const int32_t upper = mcud_dual_upper(word);
                const int8_t *const values = x + i / 2 * 4 + i % 2;
                both += (uint32_t)(values[0] * lower) + (uint32_t)(values[2] * upper);
                even += (uint32_t)(values[0] * mcud_dual_byte(lower)) + (uint32_t)(values[2] * mcud_dual_byte(upper));
            }
            const int32_t odd = (int32_t)(both - even) / 256; /* a multiple of 256 */
            y[2 * pair] = MCUD_RESULT_S8((int32_t)even, factors + 2 * pair, MCUD_DUAL_CHANNELS, &finish);
            y[2 * pair + 1] = MCUD_RESULT_S8(odd, factors + 2 * pair + 1, MCUD_DUAL_CHANNELS, &finish);
        }
        record = factors + MCUD_DUAL_CHANNELS * MCUD_FACTORS;
    }
    return record;
}

#endif
