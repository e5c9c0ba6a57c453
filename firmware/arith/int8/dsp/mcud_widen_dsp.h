/* mcud_widen_s8.h for Arm cores with the DSP extension. */
#ifndef MCUD_WIDEN_DSP_H
#define MCUD_WIDEN_DSP_H

enum { MCUD_ONES = 0x10001 };

/* -zero_point in both halves. */
static inline int32_t mcud_widen_zero(int32_t zero_point)
{
    return (int32_t)(((uint32_t)-zero_point << 16) | ((uint32_t)-zero_point & 0xFFFFu));
}

/* Widens line[length] to a channel's weights; `length` is a multiple of four. Returns their sum. */
static inline int32_t mcud_widen_fours(const int8_t *line, int32_t length, int32_t zero_point, int32_t *weights)
{
    const int32_t zero = mcud_widen_zero(zero_point);
    int32_t sum = 0;
    for (const int8_t *const end = line + length; line < end; line += 4, weights += 4) {
        const int32_t word = mcud_load_word(line);
        weights[0] = mcud_add_even_bytes(zero, word);
        weights[2] = mcud_add_odd_bytes(zero, word);
        sum = mcud_add_products(weights[0], MCUD_ONES, sum);
        sum = mcud_add_products(weights[2], MCUD_ONES, sum);
    }
    return sum;
}

/* Writes four values of two channels to a record, as pairs (0, 2) and (1, 3), and adds them to the sums of both. */
static inline void mcud_widen_record(int32_t *record, int32_t k, const int32_t first[2], const int32_t second[2])
{
    int32_t *weights = record + 2 + k;
    weights[0] = first[0];
    weights[1] = second[0];
    weights[2] = first[1];
    weights[3] = second[1];
    record[0] = mcud_add_products(first[1], MCUD_ONES, mcud_add_products(first[0], MCUD_ONES, record[0]));
    record[1] = mcud_add_products(second[1], MCUD_ONES, mcud_add_products(second[0], MCUD_ONES, record[1]));
}

/* Widens four channels at a time; returns the first channel that remains. */
static inline int32_t mcud_widen_columns(const mcud_widened *to, int32_t k, const int8_t *const lines[4], int32_t count)
{
    const int32_t zero = mcud_widen_zero(to->zero_point);
    const int32_t whole = count == 4 ? to->channels & ~3 : 0;
    int32_t *record = to->records;
    for (int32_t channel = 0; channel < whole; channel += 4, record += 2 * to->record_words) {
        int32_t even[4];
        int32_t odd[4];
        for (int32_t i = 0; i < 4; i++) {
            const int32_t word = mcud_load_word(lines[i] + channel);
            even[i] = mcud_add_even_bytes(zero, word);
            odd[i] = mcud_add_odd_bytes(zero, word);
        }
        const int32_t columns[4][2] = {
            {mcud_lower_halves(even[0], even[2]), mcud_lower_halves(even[1], even[3])},
            {mcud_lower_halves(odd[0], odd[2]), mcud_lower_halves(odd[1], odd[3])},
            {mcud_upper_halves(even[0], even[2]), mcud_upper_halves(even[1], even[3])},
            {mcud_upper_halves(odd[0], odd[2]), mcud_upper_halves(odd[1], odd[3])},
        };
        mcud_widen_record(record, k, columns[0], columns[1]);
        mcud_widen_record(record + to->record_words, k, columns[2], columns[3]);
    }
    return whole;
}

#endif
