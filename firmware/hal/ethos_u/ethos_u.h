/* The interface is among the headers that kernels and applications include. */
#include "mcud_npu.h"
