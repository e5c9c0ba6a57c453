/* resize_linear_s8 by vectors of channels; 44 <= shift <= 54, so that arithmetic in 32 bits suffices. */
#ifndef MCUD_RESIZE_LINEAR_S8_MVE_H
#define MCUD_RESIZE_LINEAR_S8_MVE_H

#include "resize_linear_s8.h"

typedef mcud_resize_linear_s8_params mcud_resize_linear_s8_mve_params;

mcud_kernel mcud_resize_linear_s8_mve;

#endif
