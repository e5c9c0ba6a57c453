/* The row of a table that an index chooses. */
#ifndef MCUD_NEAREST_ROW_H
#define MCUD_NEAREST_ROW_H

#include <stdint.h>

/* A negative index counts from the end; an index outside takes the nearest row. */
static inline int32_t mcud_nearest_row(int32_t index, int32_t rows)
{
    const int32_t row = index < 0 ? index + rows : index;
    if (row < 0) {
        return 0;
    }
    return row < rows ? row : rows - 1;
}

#endif
