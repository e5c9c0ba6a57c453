/* The natural logarithm of each channel, in units of 1 / scale; 0 for inputs of 0 and 1.
 *
 * in[0]    uint32_t [1][1][channels]
 * out      int16_t [1][1][channels], saturated
 *
 * The logarithm to the base 2 has 16 fractional bits, interpolated by 128 straight lines between exact points.
 */
#ifndef MCUD_FILTER_BANK_LOG_H
#define MCUD_FILTER_BANK_LOG_H

#include "mcud.h"

typedef struct {
    const uint16_t *corrections; /* [130], 2^16 * (log2(1 + i / 128) - i / 128) */
    int32_t channels;
    int32_t shift; /* of the input, to the left: 0..31 */
    int32_t scale;
} mcud_filter_bank_log_params;

mcud_kernel mcud_filter_bank_log;

#endif
