/* The taps of depthwise windows, as pointers. */
#ifndef MCUD_TAPS_S8_H
#define MCUD_TAPS_S8_H

#include "mcud_window.h"

/* Points `taps` to the taps of a window, in the input or in `padding`, which is in flash. */
static inline void mcud_find_taps(const mcud_window *window, int32_t channels, const int8_t *padding,
                                  const mcud_window_place *place, const int8_t **taps)
{
    const int32_t pitch = window->dilation_cols * channels;
    for (int32_t r = 0; r < window->kernel_rows; r++) {
        int32_t s = 0;
        if (r >= place->rows.first && r < place->rows.end) {
            const void *row = place->memory + place->offsets[r] + place->first_byte;
            const int8_t *x = row;
            for (; s < place->cols.first; s++) {
                *taps++ = padding;
            }
            for (; s < place->cols.end; s++, x += pitch) {
                *taps++ = x;
            }
        }
        for (; s < window->kernel_cols; s++) {
            *taps++ = padding;
        }
    }
}

#endif
