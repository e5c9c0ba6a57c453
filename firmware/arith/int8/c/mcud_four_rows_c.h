/* mcud_four_rows_s8.h in portable C. */
#ifndef MCUD_FOUR_ROWS_C_H
#define MCUD_FOUR_ROWS_C_H

static inline void mcud_interleave_rows(int8_t *to, const mcud_rows_of_four *rows, int32_t columns)
{
    for (int32_t i = 0; i < 4; i++) {
        const int8_t *at = rows->at[i];
        for (int32_t col = 0; col < columns; col++, at += rows->step[i]) {
            for (int32_t k = 0; k < rows->channels; k++) {
                to[col * MCUD_FOUR_ROWS + 4 * k + i] = at[k];
            }
        }
    }
}

/* The sum of the window whose first value is `x`. */
static inline int32_t mcud_sum_of_window(const int8_t *x, const int32_t *record)
{
    const int8_t *const w = (const int8_t *)(record + 1 + MCUD_FACTORS);
    int32_t sum = record[0];
    for (int32_t col = 0; col < 3; col++, x += MCUD_FOUR_ROWS) {
        sum += x[0] * w[4 * col] + x[1] * w[4 * col + 1] + x[2] * w[4 * col + 2];
    }
    return sum;
}

static inline void mcud_four_rows_s8(const mcud_four_rows_outputs *of, int32_t stride)
{
    const mcud_finish_s8 finish = {of->zero_point, 0, 0};
    for (int32_t k = 0; k < of->channels; k++) {
        const int32_t *const record = of->records + k * MCUD_FOUR_RECORD;
        const int8_t *block = of->x + 4 * k;
        int8_t *y = of->y + k;
        for (int32_t i = 0; i < of->blocks; i++, block += of->columns * MCUD_FOUR_ROWS, y += of->rows * of->row) {
            const int8_t *x = block;
            for (int32_t col = 0; col < of->outputs; col++, x += stride * MCUD_FOUR_ROWS) {
                for (int32_t row = 0; row < of->rows; row++) {
                    const int32_t sum = mcud_sum_of_window(x + row, record);
                    y[row * of->row + col * of->pitch] = MCUD_RESULT_BY_VECTORS(sum, record + 1, 1, &finish);
                }
            }
        }
    }
}

#endif
