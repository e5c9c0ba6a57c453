/* Copies in to out, which is in another memory.
 *
 * in[0]    [rows][row_bytes]
 * out      [rows][row_bytes]
 */
#ifndef MCUD_COPY_H
#define MCUD_COPY_H

#include "mcud.h"

typedef struct {
    int32_t row_bytes;
} mcud_copy_params;

mcud_kernel mcud_copy;

#endif
