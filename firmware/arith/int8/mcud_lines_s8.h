/* Depthwise windows by vectors, columns of which lie in lines.
 *
 * A line has the values of a channel: of each column in turn `height` rows, so that a window is one run of bytes. A window
 * that begins n rows lower in the same columns has its weights n bytes later. A record of a channel is the bias,
 * the factors, and the weights in the order of a line, 0 for missing rows and up to whole vectors.
 *
 *   mcud_interleave_lines  two rows to lines
 *   mcud_lines_s8          outputs of some rows, by channel
 */
#ifndef MCUD_LINES_S8_H
#define MCUD_LINES_S8_H

#include "mcud_vector.h"

/* Two rows of the input, `step` to their next column, which is 0 in the padding. */
typedef struct {
    const int8_t *at[2];
    int32_t step[2];
    int32_t channels; /* 2..16, even */
    int32_t columns;
} mcud_two_rows;

/* The outputs of up to 16 channels. */
typedef struct {
    const int8_t *x; /* lines[channels] */
    int8_t *y;
    const int32_t *records;
    int32_t channels;
    int32_t line;    /* bytes from a channel's line to the next one's */
    int32_t step;    /* bytes of a line from an output to the next one */
    int32_t outputs; /* in a row, 4 or more */
    int32_t rows;
    int32_t pitch;   /* from an output's results to the next one's */
    int32_t row;     /* to those of the next row */
    int32_t zero_point;
} mcud_lines_outputs;

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include "mcud_lines_mve.h"
#else
#include "mcud_lines_c.h"
#endif

#endif
