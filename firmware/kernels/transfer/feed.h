/* Input that the application delivers row by row.
 *
 * out  [rows][...], any type
 */
#ifndef MCUD_FEED_H
#define MCUD_FEED_H

#include "mcud.h"

/* Writes `rows` rows of model input `input`, from `first_row` on, to `to`. */
typedef void mcud_feed_rows(uint32_t input, int32_t first_row, int32_t rows, void *to);

typedef struct {
    mcud_feed_rows *feed; /* of the generated program */
    int32_t input;        /* number of the model input, from 0 */
} mcud_feed_params;

mcud_kernel mcud_feed;

#endif
