/* Vectors of 16 bytes, as the M-profile Vector Extension (Helium) has them: what the kernels named _mve are made of.
 *
 * The portable twin has the same functions and gives the same bits, so that these kernels run on the host as well;
 * other cores are better served by the kernels without vectors.
 */
#ifndef MCUD_VECTOR_H
#define MCUD_VECTOR_H

#include "mcud_params.h"
#include "mcud_simd.h"

/* Without optimisation there are too few registers for the blocks. */
#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include "mcud_vector_mve.h"
#else
#include "mcud_vector_c.h"
#endif

#endif
