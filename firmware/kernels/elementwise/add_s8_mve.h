/* add_s8 by vectors, for operands that both have all channels. */
#ifndef MCUD_ADD_S8_MVE_H
#define MCUD_ADD_S8_MVE_H

#include "add_s8.h"

typedef mcud_add_s8_params mcud_add_s8_mve_params;

mcud_kernel mcud_add_s8_mve;

#endif
