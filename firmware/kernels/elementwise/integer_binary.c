#include "integer_binary.h"

#include "mcud_operand.h"

/* Arithmetic is on uint32_t, which wraps around in C as well. */
static int32_t add(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static int32_t sub(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

static int32_t mul(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a * (uint32_t)b);
}

/* Rounds towards zero; 0 if b is 0. */
static int32_t divide(int32_t a, int32_t b)
{
    if (b == 0 || b == -1) {
        return b == 0 ? 0 : sub(0, a);
    }
    return a / b;
}

/* The remainder with the sign of a; 0 if b is 0. */
static int32_t remainder_of(int32_t a, int32_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

/* The remainder with the sign of b. */
static int32_t modulo(int32_t a, int32_t b)
{
    const int32_t rest = remainder_of(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int32_t power(int32_t a, int32_t b)
{
    if (b < 0) {
        return a == 1 || a == -1 ? power(a, b & 1) : 0;
    }
    int32_t result = 1;
    for (; b > 0; b >>= 1) {
        result = (b & 1) != 0 ? mul(result, a) : result;
        a = mul(a, a);
    }
    return result;
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t less(int32_t a, int32_t b)
{
    return a < b;
}

static int32_t less_equal(int32_t a, int32_t b)
{
    return a <= b;
}

static int32_t equal(int32_t a, int32_t b)
{
    return a == b;
}

static int32_t keep(int32_t a, int32_t b)
{
    return a != 0 ? b : 0;
}

static int32_t drop(int32_t a, int32_t b)
{
    return a != 0 ? 0 : b;
}

static int32_t bits_and(int32_t a, int32_t b)
{
    return a & b;
}

static int32_t bits_or(int32_t a, int32_t b)
{
    return a | b;
}

static int32_t bits_xor(int32_t a, int32_t b)
{
    return a ^ b;
}

static int32_t shift_left(int32_t a, int32_t b)
{
    return b < 0 || b > 31 ? 0 : (int32_t)((uint32_t)a << b);
}

/* Fills with the sign, also for shifts by 32 places and more. */
static int32_t shift_right(int32_t a, int32_t b)
{
    const int32_t places = b < 0 || b > 31 ? 31 : b;
    return a < 0 ? ~(~a >> places) : a >> places;
}

typedef int32_t function_of_two(int32_t a, int32_t b);

/* In the order of IntegerFunction in mcudeploy/ops/scalar/integer.py. */
static function_of_two *const functions[] = {
    add,  sub,        mul,   divide, modulo, remainder_of, power,   larger,   smaller,
    less, less_equal, equal, keep,   drop,   bits_and,     bits_or, bits_xor, shift_left,
    shift_right,
};

/* The row of an operand, in bytes. */
static const void *row_of(const int32_t *constant, const mcud_tensor *tensor, int32_t row, int32_t row_step)
{
    if (constant != NULL) {
        return constant + row * row_step;
    }
    return mcud_row(tensor, row_step == 0 ? 0 : row);
}

static int32_t element(const void *row, int32_t at, int32_t bytes, int32_t offset)
{
    if (bytes == 1) {
        return ((const int8_t *)row)[at] + offset;
    }
    return bytes == 2 ? ((const int16_t *)row)[at] : ((const int32_t *)row)[at];
}

static void one_row(const mcud_integer_binary_params *params, const void *a, const void *b, void *out)
{
    function_of_two *const function = functions[params->function];
    int32_t at = 0;
    for (int32_t col = 0; col < params->broadcast.cols; col++) {
        int32_t a_at = col * params->broadcast.a_col_step;
        int32_t b_at = col * params->broadcast.b_col_step;
        for (int32_t channel = 0; channel < params->broadcast.channels; channel++, at++) {
            const int32_t made = function(element(a, a_at, params->a_bytes, params->a_offset),
                                          element(b, b_at, params->b_bytes, params->b_offset));
            if (params->out_bytes == 1) {
                ((int8_t *)out)[at] = (int8_t)(uint8_t)sub(made, params->out_offset);
            } else if (params->out_bytes == 2) {
                ((int16_t *)out)[at] = (int16_t)(uint16_t)made;
            } else {
                ((int32_t *)out)[at] = made;
            }
            a_at += params->broadcast.a_channel_step;
            b_at += params->broadcast.b_channel_step;
        }
    }
}

void mcud_integer_binary(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_integer_binary_params *params = op->params;
    const mcud_operands tensors = mcud_find_operands(op, params->a, params->b);
    for (int32_t row = first_row; row < end_row; row++) {
        const void *a = row_of(params->a, tensors.a, row, params->broadcast.a_row_step);
        const void *b = row_of(params->b, tensors.b, row, params->broadcast.b_row_step);
        one_row(params, a, b, mcud_row(op->out, row));
    }
}
