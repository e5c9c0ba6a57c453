/* Softmax within a row (over columns or channels), int8, with the bits of TensorFlow Lite Micro.
 *
 * in[0]    int8 [rows][...]
 * out      int8 [rows][...], of scale 1/256 and zero point -128; may be in[0]
 *
 * Group g has its elements at g * group_step + i * step, i < count.
 *
 * As in gemmlowp's fixedpoint.h, exponentials have 31 fraction bits and their sum 19. Newton's method gives the
 * reciprocal of the sum. A product with it is rounded to 31 fraction bits, then to 8.
 */
#ifndef MCUD_SOFTMAX_S8_TFLITE_H
#define MCUD_SOFTMAX_S8_TFLITE_H

#include "mcud.h"

typedef struct {
    const int32_t *table; /* [256]: exp(-scale * (max - q)) */
    int32_t count;        /* below 4096 */
    int32_t step;
    int32_t groups; /* in a row */
    int32_t group_step;
} mcud_softmax_s8_tflite_params;

mcud_kernel mcud_softmax_s8_tflite;

#endif
