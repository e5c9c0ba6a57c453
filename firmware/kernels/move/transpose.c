#include "transpose.h"

#include <stddef.h>

enum { MAX_DIMS = 6 };

/* Elements [first, end) of the input, which are in one block that begins at `start`. */
typedef struct {
    const mcud_tensor *tensor;
    const uint8_t *start;
    int32_t row_elements;
    int32_t block_elements;
    int32_t first;
    int32_t end;
} window;

/* The position of the copy in the output's dimensions, and its flat position in the input. */
typedef struct {
    int32_t index[MAX_DIMS];
    int32_t source;
} place;

static place place_of(const mcud_transpose_params *params, int32_t element)
{
    place at = {{0}, 0};
    for (int32_t d = params->dims - 1; d >= 0; d--) {
        const int32_t size = (int32_t)params->sizes[d];
        at.index[d] = element % size;
        at.source += at.index[d] * (int32_t)params->strides[d];
        element /= size;
    }
    return at;
}

/* Steps `count` elements forward, at most to the end of the last dimension. */
static void advance(const mcud_transpose_params *params, place *at, int32_t count)
{
    int32_t d = params->dims - 1;
    at->index[d] += count;
    at->source += count * (int32_t)params->strides[d];
    for (; d > 0 && at->index[d] == (int32_t)params->sizes[d]; d--) {
        at->source += (int32_t)params->strides[d - 1] - at->index[d] * (int32_t)params->strides[d];
        at->index[d] = 0;
        at->index[d - 1]++;
    }
}

static void open_block(window *view, int32_t element)
{
    const mcud_tensor *tensor = view->tensor;
    const int32_t lead = (int32_t)tensor->lead;
    const int32_t lead_elements = lead * view->row_elements;
    const int32_t block = (element + lead_elements) / view->block_elements;
    view->start = mcud_row(tensor, block * (int32_t)tensor->block_rows - lead);
    view->first = block * view->block_elements - lead_elements;
    view->end = view->first + view->block_elements;
}

static void copy_bytes(window *view, int32_t source, int32_t stride, uint8_t *target, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (source < view->first || source >= view->end) {
            open_block(view, source);
        }
        target[i] = view->start[source - view->first];
        source += stride;
    }
}

static void copy_halves(window *view, int32_t source, int32_t stride, void *target, int32_t count)
{
    uint16_t *to = target;
    for (int32_t i = 0; i < count; i++) {
        if (source < view->first || source >= view->end) {
            open_block(view, source);
        }
        const void *start = view->start;
        const uint16_t *from = start;
        to[i] = from[source - view->first];
        source += stride;
    }
}

static void copy_words(window *view, int32_t source, int32_t stride, void *target, int32_t count)
{
    uint32_t *to = target;
    for (int32_t i = 0; i < count; i++) {
        if (source < view->first || source >= view->end) {
            open_block(view, source);
        }
        const void *start = view->start;
        const uint32_t *from = start;
        to[i] = from[source - view->first];
        source += stride;
    }
}

void mcud_transpose(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_transpose_params *params = op->params;
    const mcud_tensor *in = op->in[0];
    const int32_t last_size = (int32_t)params->sizes[params->dims - 1];
    const int32_t last_stride = (int32_t)params->strides[params->dims - 1];
    const int32_t row_elements = params->in_row_elements;
    const uint32_t most_rows = INT32_MAX / (uint32_t)row_elements; /* MCUD_WHOLE would overflow */
    const uint32_t block_rows = in->block_rows < most_rows ? in->block_rows : most_rows;
    window view = {in, NULL, row_elements, (int32_t)block_rows * row_elements, 0, 0};
    place at = place_of(params, first_row * params->out_row_elements);
    for (int32_t row = first_row; row < end_row; row++) {
        uint8_t *target = mcud_row(op->out, row);
        for (int32_t left = params->out_row_elements; left > 0;) {
            const int32_t run = last_size - at.index[params->dims - 1];
            const int32_t count = run < left ? run : left;
            if (params->element_bytes == 1) {
                copy_bytes(&view, at.source, last_stride, target, count);
            } else if (params->element_bytes == 2) {
                copy_halves(&view, at.source, last_stride, target, count);
            } else {
                copy_words(&view, at.source, last_stride, target, count);
            }
            advance(params, &at, count);
            target += count * params->element_bytes;
            left -= count;
        }
    }
}
