#include "top_k.h"

#include <string.h>

typedef struct {
    int32_t key; /* greater for an element that comes first */
    int32_t place;
} candidate;

static int is_nan(int32_t bits)
{
    return (bits & INT32_MAX) > 0x7F800000;
}

/* A key in the order of floats: the bits, inverted for negative numbers. -0.0 equals 0.0, and NaN is the largest. */
static int32_t float_key(int32_t bits)
{
    if (bits == INT32_MIN) {
        return 0;
    }
    if (is_nan(bits)) {
        return INT32_MAX;
    }
    return bits < 0 ? bits ^ INT32_MAX : bits;
}

static int32_t key_of(const mcud_top_k_params *params, const void *row, int32_t at, int32_t place)
{
    int32_t key;
    if (params->element == 0) {
        key = ((const int8_t *)row)[at];
    } else if (params->element == 1) {
        key = ((const int32_t *)row)[at];
    } else {
        int32_t bits;
        memcpy(&bits, (const float *)row + at, sizeof bits);
        if (params->first_stays && is_nan(bits)) {
            return place == 0 ? INT32_MAX : INT32_MIN;
        }
        key = float_key(bits);
    }
    return params->smallest ? ~key : key;
}

static int precedes(const mcud_top_k_params *params, candidate one, candidate other)
{
    if (one.key != other.key) {
        return one.key > other.key;
    }
    return params->last_first ? one.place > other.place : one.place < other.place;
}

/* The first element of a line in the result's order, or the one after `last`. `row` has the line, unless it runs along
 * rows. */
static candidate next(const mcud_op *op, const void *row, int32_t at, const candidate *last)
{
    const mcud_top_k_params *params = op->params;
    candidate best = {0, -1};
    for (int32_t place = 0; place < params->size; place++) {
        const void *from = params->by_rows ? mcud_row(op->in[0], place) : row;
        const candidate found = {key_of(params, from, at, place), place};
        at += params->by_rows ? 0 : params->step;
        if (last != NULL && !precedes(params, *last, found)) {
            continue;
        }
        if (best.place < 0 || precedes(params, found, best)) {
            best = found;
        }
    }
    return best;
}

static void put(const mcud_top_k_params *params, void *out, int32_t out_at, const void *in, int32_t at, int32_t place)
{
    if (params->indices) {
        ((int32_t *)out)[out_at] = place;
    } else if (params->element == 0) {
        ((int8_t *)out)[out_at] = ((const int8_t *)in)[at];
    } else {
        memcpy((uint8_t *)out + 4 * out_at, (const uint8_t *)in + 4 * at, 4);
    }
}

static void along_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_top_k_params *params = op->params;
    for (int32_t line = 0; line < params->lines; line++) {
        candidate last = {0, 0};
        for (int32_t row = 0; row < end_row; row++) {
            last = next(op, NULL, line, row == 0 ? NULL : &last);
            if (row >= first_row) {
                put(params, mcud_row(op->out, row), line, mcud_row(op->in[0], last.place), line, last.place);
            }
        }
    }
}

static void within(const mcud_op *op, int32_t row)
{
    const mcud_top_k_params *params = op->params;
    const void *in = mcud_row(op->in[0], row);
    void *out = mcud_row(op->out, row);
    for (int32_t line = 0; line < params->lines; line++) {
        const int32_t at = line * params->line_step, out_at = line * params->out_line_step;
        candidate last = {0, 0};
        for (int32_t i = 0; i < params->count; i++) {
            last = next(op, in, at, i == 0 ? NULL : &last);
            put(params, out, out_at + i * params->step, in, at + last.place * params->step, last.place);
        }
    }
}

void mcud_top_k(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_top_k_params *params = op->params;
    if (params->by_rows) {
        along_rows(op, first_row, end_row);
        return;
    }
    for (int32_t row = first_row; row < end_row; row++) {
        within(op, row);
    }
}
