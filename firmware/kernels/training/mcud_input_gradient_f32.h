/* Gradients of the inputs of convolutions, float32: the walk over rows, taps and columns that their kernels share. */
#ifndef MCUD_INPUT_GRADIENT_F32_H
#define MCUD_INPUT_GRADIENT_F32_H

#include <string.h>

#include "mcud.h"
#include "mcud_params.h"
#include "mcud_window.h"

/* Adds the products of a pixel of the output's gradient and a tap to a pixel of the result. */
typedef void mcud_add_pixel_f32(const void *params, const float *gradient, const float *tap, float *out);

/* The same for `count` columns of the output, whose results are `pitch` values apart. */
typedef void mcud_add_columns_f32(const void *params, const float *gradient, const float *tap, int32_t count,
                                  float *out, int32_t pitch);

/* A convolution whose weights are [kernel_rows][kernel_cols][tap_values], or that for each output channel. */
typedef struct {
    const void *params; /* of the kernel, for `add_pixel` */
    mcud_add_pixel_f32 *add_pixel;
    mcud_add_pixel_f32 *add_pair;      /* the same for two columns of the output, or NULL */
    mcud_add_columns_f32 *add_columns; /* replaces both, or NULL */
    const float *weights;
    const mcud_conv_dims *dims;
    const mcud_window *window;
    int32_t output_rows;
    int32_t tap_values; /* from a tap to the next one */
} mcud_input_gradient_f32;

/* Adds the products of one row of the output's gradient and the taps `weights` of one row. */
static inline void mcud_add_gradient_row_f32(const mcud_input_gradient_f32 *of, const float *gradient,
                                             const float *weights, float *out)
{
    const int32_t stride = of->window->stride_cols;
    for (int32_t s = 0; s < of->window->kernel_cols; s++) {
        const int32_t start = s * of->window->dilation_cols - of->window->pad_left;
        const mcud_taps cols = mcud_taps_inside(start, stride, of->dims->output_cols, 0, of->dims->input_cols);
        if (of->add_columns != NULL) {
            const int32_t first = cols.first < cols.end ? cols.first : 0;
            of->add_columns(of->params, gradient + first * of->dims->output_channels, weights + s * of->tap_values,
                            cols.end - cols.first, out + (start + first * stride) * of->dims->input_channels,
                            stride * of->dims->input_channels);
            continue;
        }
        for (int32_t col = cols.first, count; col < cols.end; col += count) {
            const float *from = gradient + col * of->dims->output_channels;
            const float *tap = weights + s * of->tap_values;
            float *to = out + (start + col * stride) * of->dims->input_channels;
            count = of->add_pair != NULL && cols.end - col >= 2 ? 2 : 1;
            if (count == 2) { /* two calls: each has one target, which the compiler knows */
                of->add_pair(of->params, from, tap, to);
            } else {
                of->add_pixel(of->params, from, tap, to);
            }
        }
    }
}

/* Computes rows of the input's gradient, each as a sum over the taps that read it. */
static inline void mcud_input_gradient_rows_f32(const mcud_op *op, const mcud_input_gradient_f32 *of, int32_t first_row,
                                                int32_t end_row)
{
    const mcud_window *const window = of->window;
    const int32_t row_values = of->dims->input_cols * of->dims->input_channels;
    for (int32_t row = first_row; row < end_row; row++) {
        float *out = mcud_row(op->out, row);
        memset(out, 0, (size_t)row_values * sizeof *out);
        for (int32_t r = 0; r < window->kernel_rows; r++) {
            const int32_t top = row + window->pad_top - r * window->dilation_rows;
            const int32_t from = top / window->stride_rows;
            if (top >= 0 && top == from * window->stride_rows && from < of->output_rows) {
                mcud_add_gradient_row_f32(of, mcud_row(op->in[0], from),
                                          of->weights + r * window->kernel_cols * of->tap_values, out);
            }
        }
    }
}

#endif
