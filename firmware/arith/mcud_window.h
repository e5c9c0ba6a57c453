/* Windows that slide over a tensor: which taps lie inside, where their rows are, and gathering them. */
#ifndef MCUD_WINDOW_H
#define MCUD_WINDOW_H

#include <string.h>

#include "mcud.h"
#include "mcud_params.h"

/* The taps [first, end) of one dimension of a window; first <= end. */
typedef struct {
    int32_t first;
    int32_t end;
} mcud_taps;

/* Which of `count` taps at start, start + step, ... have a position in [low, high); step >= 1. */
static inline mcud_taps mcud_taps_inside(int32_t start, int32_t step, int32_t count, int32_t low,
                                         int32_t high)
{
    mcud_taps taps = {0, count};
    if (start >= low && start + (count - 1) * step < high) {
        return taps;
    }
    while (taps.first < taps.end && start + taps.first * step < low) {
        taps.first++;
    }
    while (taps.end > taps.first && start + (taps.end - 1) * step >= high) {
        taps.end--;
    }
    return taps;
}

/* The rows of a window from row `top` on that lie in the input's. */
static inline mcud_taps mcud_row_taps(const mcud_window *window, int32_t top, int32_t input_rows)
{
    return mcud_taps_inside(top, window->dilation_rows, window->kernel_rows, 0, input_rows);
}

/* The same of columns. */
static inline mcud_taps mcud_col_taps(const mcud_window *window, int32_t left, int32_t input_cols)
{
    return mcud_taps_inside(left, window->dilation_cols, window->kernel_cols, 0, input_cols);
}

/* The number of outputs, up to `most`, that a loop over channels may take as one from that whose window begins at column
 * `left` on: more than one with a stride of 1 and without padding, as their taps and channels lie side by side. */
static inline int32_t mcud_joined_outputs(const mcud_window *window, int32_t left, int32_t input_cols, int32_t most)
{
    const int32_t inside = input_cols - left - (window->kernel_cols - 1) * window->dilation_cols;
    if (window->stride_cols != 1 || left < 0 || inside < 1) {
        return 1;
    }
    return inside < most ? inside : most;
}

/* Byte offsets from tensor->memory of the rows that `taps` of a window touch, at their tap's place in
 * `offsets`; the window begins at row `start` and its taps are `step` rows apart. One division for all. */
static inline void mcud_window_rows(const mcud_tensor *tensor, int32_t start, int32_t step, mcud_taps taps,
                                    uint32_t *offsets)
{
    if (taps.first == taps.end) {
        return;
    }
    const uint32_t row = (uint32_t)(start + taps.first * step) + tensor->lead;
    uint32_t block = row / tensor->block_rows;
    uint32_t row_in_block = row - block * tensor->block_rows;
    for (int32_t tap = taps.first; tap < taps.end; tap++) {
        while (row_in_block >= tensor->block_rows) {
            row_in_block -= tensor->block_rows;
            block++;
        }
        offsets[tap] = tensor->offsets[block] * (uint32_t)MCUD_ALIGN + row_in_block * tensor->row_bytes;
        row_in_block += (uint32_t)step;
    }
}

/* The number of output rows from `row` on, before `end_row`, whose windows have no padding above and below and read
 * rows that are contiguous. */
static inline int32_t mcud_rows_alike(const mcud_tensor *in, const mcud_window *window, int32_t input_rows, int32_t row,
                                      int32_t end_row)
{
    const int32_t reach = (window->kernel_rows - 1) * window->dilation_rows + 1;
    const int32_t top = row * window->stride_rows - window->pad_top;
    const int32_t last = (end_row - 1) * window->stride_rows - window->pad_top + reach;
    const int32_t end = last < input_rows ? last : input_rows;
    if (top < 0 || top + reach > end) {
        return 0;
    }
    const int32_t left = mcud_run_end(in, top, end) - top - reach;
    return left < 0 ? 0 : left / window->stride_rows + 1;
}

/* The source of one output pixel's taps. */
typedef struct {
    const uint8_t *memory;   /* of the input */
    const uint32_t *offsets; /* of the rows, see mcud_window_rows */
    mcud_taps rows;
    mcud_taps cols;
    int32_t first_byte; /* of tap cols.first in an input row */
} mcud_window_place;

/* A window's kernel rows for a gather; all sizes in bytes. */
typedef struct {
    const uint8_t *memory;   /* of the input, plus the offset of the group's first channel */
    const uint32_t *offsets; /* of the rows, see mcud_window_rows */
    mcud_taps rows;          /* inside the input */
    int32_t kernel_rows;
    int32_t kernel_cols;
    int32_t tap_bytes; /* what one tap contributes to a patch */
    int32_t tap_pitch; /* from one tap's values in the input to the next one's */
    int32_t fill;      /* byte that stands for padding */
} mcud_patch_source;

/* Copies the values under a window to patch[kernel_rows][kernel_cols][tap_bytes]. Tap cols.first lies at
 * byte `first_byte` of the input rows; what is not in window->rows and `cols` is padding. */
static inline void mcud_gather_window(const mcud_patch_source *window, mcud_taps cols, int32_t first_byte,
                                      uint8_t *patch)
{
    const int32_t left = cols.first * window->tap_bytes;
    const int32_t inside = (cols.end - cols.first) * window->tap_bytes;
    const int32_t row_bytes = window->kernel_cols * window->tap_bytes;
    for (int32_t r = 0; r < window->kernel_rows; r++, patch += row_bytes) {
        if (r < window->rows.first || r >= window->rows.end || inside < row_bytes) {
            memset(patch, window->fill, (size_t)row_bytes);
        }
        if (r < window->rows.first || r >= window->rows.end || inside == 0) {
            continue;
        }
        const uint8_t *source = window->memory + window->offsets[r] + first_byte;
        uint8_t *target = patch + left;
        if (window->tap_pitch == window->tap_bytes) {
            memcpy(target, source, (size_t)inside);
            continue;
        }
        for (int32_t s = cols.first; s < cols.end; s++) {
            memcpy(target, source, (size_t)window->tap_bytes);
            target += window->tap_bytes;
            source += window->tap_pitch;
        }
    }
}

/* Room for pointers to int8 in a table of words; takes up to a word more than they do. */
static inline const int8_t **mcud_pointers(uint32_t *room)
{
    const uintptr_t misplaced = (uintptr_t)room % sizeof(void *);
    return (const int8_t **)(void *)((uint8_t *)room + (misplaced == 0 ? 0 : sizeof(void *) - misplaced));
}

#endif
