/* The blocks of mcud_s4w.c in portable C. */
#ifndef MCUD_S4W_C_H
#define MCUD_S4W_C_H

static inline void mcud_s4w_sum_pairs(const int16_t *x, mcud_s4w_block *by)
{
    (void)x, (void)by; /* weights are taken apart with their signs */
}

static inline void mcud_s4w_sum_values(const int8_t *x, mcud_s4w_block *by)
{
    (void)x, (void)by;
}

/* Adds the products of a pair of values of `pixels` pixels, x[pixels][2], and the weights of channel i. */
static inline void mcud_s4w_channel(const int16_t *x, int32_t pixels, uint32_t word, int32_t i, int32_t sums[8])
{
    const int32_t lower = (int32_t)(word << (28 - 4 * i)) >> 28;
    const int32_t upper = (int32_t)(word << (12 - 4 * i)) >> 28;
    sums[i] += x[0] * lower + x[1] * upper;
    if (pixels == 2) {
        sums[4 + i] += x[2] * lower + x[3] * upper;
    }
}

/* The same for a word of weights. */
static inline void mcud_s4w_pair(const int16_t *x, int32_t pixels, int32_t word, int32_t sums[8])
{
    const uint32_t w = (uint32_t)word ^ 0x08880888u; /* all of two's complement */
    mcud_s4w_channel(x, pixels, w, 0, sums);
    mcud_s4w_channel(x, pixels, w, 1, sums);
    mcud_s4w_channel(x, pixels, w, 2, sums);
    mcud_s4w_channel(x, pixels, w, 3, sums);
}

static inline void mcud_s4w_results(const int32_t *sums, const int32_t *record, int8_t *y, const mcud_s4w_block *by)
{
    const mcud_finish_s8 finish = {by->zero_point, by->left, 0};
    for (int32_t i = 0; i < 4; i++) {
        y[i] = MCUD_RESULT_S8(sums[i] + record[i], record + 4 + i, 4, &finish);
    }
}

static void mcud_s4w_2x4(const int16_t *x, const int32_t *record, int8_t *y, const mcud_s4w_block *by)
{
    for (const int8_t *const end = y + by->channels; y < end; y += 4) {
        int32_t sums[8] = {0};
        const int16_t *const last = x + 4 * by->pairs;
        for (const int16_t *at = x; at < last; at += 4) {
            mcud_s4w_pair(at, 2, *record++, sums);
        }
        mcud_s4w_results(sums, record, y, by);
        mcud_s4w_results(sums + 4, record, y + by->pitch, by);
        record += 4 + 4 * MCUD_FACTORS;
    }
}

static const int32_t *mcud_s4w_1x4(const int8_t *x, const int32_t *record, int8_t *y, const mcud_s4w_block *by)
{
    for (const int8_t *const end = y + by->channels; y < end; y += 4) {
        int32_t sums[8] = {0};
        const int8_t *const last = x + 2 * by->pairs;
        for (const int8_t *at = x; at < last; at += 4) {
            const int16_t even[2] = {at[0], at[2]};
            const int16_t odd[2] = {at[1], at[3]};
            mcud_s4w_pair(even, 1, *record++, sums);
            mcud_s4w_pair(odd, 1, *record++, sums);
        }
        mcud_s4w_results(sums, record, y, by);
        record += 4 + 4 * MCUD_FACTORS;
    }
    return record;
}

#endif
