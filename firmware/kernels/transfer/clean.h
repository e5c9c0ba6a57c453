/* Copies in to out, then cleans the cache: memory has the bytes of out (mcud_cache.h).
 *
 * in[0]    [rows][row_bytes]
 * out      [rows][row_bytes]; may be in[0]
 */
#ifndef MCUD_CLEAN_H
#define MCUD_CLEAN_H

#include "mcud.h"

typedef struct {
    int32_t row_bytes;
} mcud_clean_params;

mcud_kernel mcud_clean;

#endif
