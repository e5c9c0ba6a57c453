/* Concatenates chosen channels of each input, int8, requantised.
 *
 * in[i]    int8 [rows][pixels][in_channels[i]]
 * out      int8 [rows][pixels][out_channels]: taken[0] of in[0], then taken[1] of in[1], ...
 */
#ifndef MCUD_CONCAT_CHANNELS_H
#define MCUD_CONCAT_CHANNELS_H

#include "mcud.h"

typedef struct {
    const int8_t *tables; /* [table_count][256], results for inputs of -128 to 127; or NULL: all inputs are copied */
    const uint32_t *table_of_input; /* [inputs]; table_count: the input is copied; NULL if there are no tables */
    const uint16_t *channels; /* [out_channels], which channel of its input; those of an input ascend */
    const uint16_t *taken; /* [inputs], number of chosen channels, at least 1 */
    const uint16_t *in_channels; /* [inputs] */
    int32_t inputs;
    int32_t pixels;
    int32_t out_channels;
    int32_t table_count;
} mcud_concat_channels_params;

mcud_kernel mcud_concat_channels;

#endif
