/* Copies elements by numbers of rows, and by runs inside a row; elements of 1, 2 or 4 bytes.
 *
 * in[0]    [...][...]
 * out      [...][outer_count][sum of sizes]
 *
 * Output row r has, for each o and inside it for each i, sizes[i] elements of input row rows[r] from element outers[o]
 * + starts[i] on.
 */
#ifndef MCUD_TAKE_H
#define MCUD_TAKE_H

#include "mcud.h"

typedef struct {
    const uint16_t *rows; /* the input row of each output row */
    const uint16_t *outers; /* [outer_count] */
    const uint16_t *starts; /* [run_count] */
    const uint16_t *sizes; /* [run_count]; or NULL: all are 1 */
    int32_t outer_count;
    int32_t run_count;
    int32_t element_bytes; /* 1, 2 or 4 */
} mcud_take_params;

mcud_kernel mcud_take;

#endif
