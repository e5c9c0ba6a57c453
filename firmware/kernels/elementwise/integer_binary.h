/* Functions of two integers, element by element. A result that does not fit wraps around.
 *
 * in       the operands that are not constants, in order: int8_t, int16_t or int32_t [...][...][...]
 * out      int8_t, int16_t or int32_t [rows][cols][channels]; may be an operand of its type that does not broadcast
 *
 * The value of an element of one byte is the stored int8 plus an offset, which is 128 for uint8.
 */
#ifndef MCUD_INTEGER_BINARY_H
#define MCUD_INTEGER_BINARY_H

#include "mcud.h"
#include "mcud_params.h"

typedef struct {
    const int32_t *a; /* constant operand, or NULL */
    const int32_t *b; /* constant operand, or NULL */
    mcud_broadcast broadcast;
    int32_t function;       /* its index in the table of integer_binary.c */
    int32_t a_bytes;        /* of an element: 1, 2 or 4 */
    int32_t b_bytes;
    int32_t out_bytes;
    int32_t a_offset;
    int32_t b_offset;
    int32_t out_offset;
} mcud_integer_binary_params;

mcud_kernel mcud_integer_binary;

#endif
