/* Moving bytes, as they are or through a table. */
#ifndef MCUD_MOVE_H
#define MCUD_MOVE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Copies `bytes` bytes; with a table each one is an int8 q that becomes table[q + 128]. */
static inline void mcud_move(uint8_t *target, const uint8_t *source, int32_t bytes, const int8_t *table)
{
    if (table == NULL) {
        memcpy(target, source, (size_t)bytes);
        return;
    }
    for (int32_t i = 0; i < bytes; i++) {
        target[i] = (uint8_t)table[source[i] ^ 0x80u];
    }
}

#endif
