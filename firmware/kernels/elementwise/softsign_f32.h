/* out = in / (1 + |in|); float.
 *
 * in[0]    float [rows][row_elements]
 * out      float [rows][row_elements]; may be in[0]
 */
#ifndef MCUD_SOFTSIGN_F32_H
#define MCUD_SOFTSIGN_F32_H

#include "mcud_map_f32.h"

typedef mcud_map_f32_params mcud_softsign_f32_params;

mcud_kernel mcud_softsign_f32;

#endif
