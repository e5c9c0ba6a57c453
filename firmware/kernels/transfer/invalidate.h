/* Invalidates the cached copy of in, then copies it from memory to out (mcud_cache.h).
 *
 * in[0]    [rows][row_bytes]
 * out      [rows][row_bytes]; may be in[0]
 */
#ifndef MCUD_INVALIDATE_H
#define MCUD_INVALIDATE_H

#include "mcud.h"

typedef struct {
    int32_t row_bytes;
} mcud_invalidate_params;

mcud_kernel mcud_invalidate;

#endif
