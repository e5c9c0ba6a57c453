/* Per-channel amplitude normalisation: compresses the signal times a gain, which a table states by the noise.
 *
 * in[0]    uint32_t [1][1][channels], the signal
 * in[1]    uint32_t [1][1][channels], the noise
 * out      uint32_t [1][1][channels], 6 fractional bits; may be the memory of in[0]
 *
 * The table has the gains for noise of 0, 1 and 2, then four values for each power of two, of which the first three are
 * the coefficients of a parabola. The product, with 12 fractional bits, becomes x * x / 4 below 2 and x - 1 above.
 */
#ifndef MCUD_PCAN_H
#define MCUD_PCAN_H

#include "mcud.h"

typedef struct {
    const int16_t *gains; /* [125] */
    int32_t channels;
    int32_t shift; /* of the product, to the right: 0..63 */
} mcud_pcan_params;

mcud_kernel mcud_pcan;

#endif
