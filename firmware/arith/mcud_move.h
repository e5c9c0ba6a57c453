/* Copies bytes unchanged, or int8 values through a table. */
#ifndef MCUD_MOVE_H
#define MCUD_MOVE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mcud_bytes.h"

/* Copies `bytes` bytes; with a table each one is an int8 q that becomes table[q + 128]. */
static inline void mcud_move(uint8_t *target, const uint8_t *source, int32_t bytes, const int8_t *table)
{
    if (table == NULL) {
        memcpy(target, source, (size_t)bytes);
        return;
    }
    mcud_look_up((int8_t *)target, (const int8_t *)source, bytes, table);
}

/* The table of an input among tables[count][256]. NULL if the input is copied: its table has number `count`, or there
 * are no tables. */
static inline const int8_t *mcud_table(const int8_t *tables, const uint32_t *table_of_input, int32_t count,
                                       int32_t input)
{
    if (tables == NULL || table_of_input[input] == (uint32_t)count) {
        return NULL;
    }
    return tables + 256 * table_of_input[input];
}

#endif
