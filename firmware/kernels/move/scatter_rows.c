#include "scatter_rows.h"

#include <stddef.h>
#include <string.h>

enum { NONE, ADD, MUL, MAX }; /* reductions; 4, the minimum, needs no name */
enum { BYTES, INTEGERS, FLOATS }; /* element types */

static int32_t reduced_s32(int32_t reduction, int32_t old, int32_t update)
{
    if (reduction == ADD) {
        return (int32_t)((uint32_t)old + (uint32_t)update);
    }
    if (reduction == MUL) {
        return (int32_t)((uint32_t)old * (uint32_t)update);
    }
    return (reduction == MAX) == (update > old) ? update : old; /* maximum or minimum */
}

static float reduced_f32(int32_t reduction, float old, float update)
{
    if (reduction == ADD) {
        return old + update;
    }
    if (reduction == MUL) {
        return old * update;
    }
    return (reduction == MAX) == (update > old) ? update : old; /* maximum or minimum */
}

static void reduce_row(const mcud_scatter_rows_params *params, void *out, const void *update)
{
    for (int32_t i = 0; i < params->row_elements; i++) {
        if (params->element == FLOATS) {
            float *to = (float *)out + i;
            *to = reduced_f32(params->reduction, *to, ((const float *)update)[i]);
        } else {
            int32_t *to = (int32_t *)out + i;
            *to = reduced_s32(params->reduction, *to, ((const int32_t *)update)[i]);
        }
    }
}

static void fill_row(const mcud_scatter_rows_params *params, void *out)
{
    if (params->element == BYTES) {
        memset(out, (int)params->fill, (size_t)params->row_elements);
        return;
    }
    for (int32_t i = 0; i < params->row_elements; i++) {
        memcpy((uint8_t *)out + 4 * i, &params->fill, 4);
    }
}

void mcud_scatter_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_scatter_rows_params *params = op->params;
    const mcud_tensor *const *in = op->in;
    const int32_t *indices = params->indices != NULL ? params->indices : mcud_row(*in++, 0);
    const mcud_tensor *updates = in[0];
    const size_t row_bytes = (size_t)params->row_elements * (params->element == BYTES ? 1u : 4u);
    for (int32_t row = first_row; row < end_row; row++) {
        void *out = mcud_row(op->out, row);
        if (params->filled) {
            fill_row(params, out);
        } else {
            memmove(out, mcud_row(in[1], row), row_bytes);
        }
    }
    for (int32_t i = 0; i < params->count; i++) {
        const int32_t row = indices[i] < 0 ? indices[i] + params->rows : indices[i];
        if (row < first_row || row >= end_row) {
            continue;
        }
        if (params->reduction == NONE) {
            memcpy(mcud_row(op->out, row), mcud_row(updates, i), row_bytes);
        } else {
            reduce_row(params, mcud_row(op->out, row), mcud_row(updates, i));
        }
    }
}
