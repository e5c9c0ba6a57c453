/* Fully connected layer of one pixel, float32.
 *
 * in[0]  float [1][1][depth]
 * out    float [1][1][channels]
 */
#ifndef MCUD_DENSE_F32_H
#define MCUD_DENSE_F32_H

#include "mcud.h"
#include "mcud_dot_f32.h"

typedef mcud_dot_f32_params mcud_dense_f32_params;

mcud_kernel mcud_dense_f32;

#endif
