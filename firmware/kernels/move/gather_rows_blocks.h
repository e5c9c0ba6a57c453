/* Rows of a table of packed weights of 2, 4 or 8 bits, chosen by indices, widened to float32. Packed as
 * mcud_blocks_f32.h states: its channels are rows of the table, its depth is their width.
 *
 * in[0]    int32_t [count]: a negative index counts from the end; one outside takes the nearest row
 * out      float [count][1][width]
 */
#ifndef MCUD_GATHER_ROWS_BLOCKS_H
#define MCUD_GATHER_ROWS_BLOCKS_H

#include "mcud.h"

typedef struct {
    const int32_t *weights;  /* [groups of 4 rows][words] */
    const float *scale;      /* [groups of 4 rows][blocks][4] */
    const int8_t *zero;      /* [groups of 4 rows][blocks][4], or NULL */
    int32_t rows;
    int32_t width;
    int32_t block; /* values in a block, a multiple of 4 */
    int32_t bits;
} mcud_gather_rows_blocks_params;

mcud_kernel mcud_gather_rows_blocks;

#endif
