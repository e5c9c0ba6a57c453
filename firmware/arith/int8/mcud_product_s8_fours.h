/* Products of columns, four at a time, for cores without vectors. */
#ifndef MCUD_PRODUCT_S8_FOURS_H
#define MCUD_PRODUCT_S8_FOURS_H

/* sums[columns] += a[length] by the columns of b[length] */
static inline void mcud_product_columns(const mcud_product_s8 *what, const int8_t *a, const int8_t *b,
                                        int32_t length, int32_t columns, int32_t *sums)
{
    int32_t j = 0;
    for (; j + 4 <= columns; j += 4) {
        mcud_product_four_columns(what, a, b + j, length, sums + j);
    }
    for (; j < columns; j++) { /* reads no bytes after a line */
        for (int32_t i = 0; i < length; i++) {
            sums[j] += (a[i] - what->a_zero_point) * (b[i * what->pitch + j] - what->b_zero_point);
        }
    }
}

#endif
