/* Tables of 513 entries, one for every 128 values, interpolated as in TFLite. */
#ifndef MCUD_TABLE_S16_H
#define MCUD_TABLE_S16_H

#include <stdint.h>

/* The entry for the upper 9 bits of a value, interpolated to the next entry by the lower 7 bits. */
static inline int32_t mcud_interpolate_s16(const int16_t *table, int32_t value)
{
    const int16_t *entry = table + 256 + (value >> 7);
    const int32_t slope = entry[1] - entry[0];
    return entry[0] + ((slope * (value & 0x7f) + 64) >> 7);
}

#endif
