/* Groups of parameters that kernels share: the sizes of tensors, the window, the requantisation, the activation. */
#ifndef MCUD_PARAMS_H
#define MCUD_PARAMS_H

#include <stdint.h>

/* Sizes of a convolution with a window; op->rows has the rows of its output. */
typedef struct {
    int32_t input_rows;
    int32_t input_cols;
    int32_t input_channels;
    int32_t output_cols;
    int32_t output_channels;
} mcud_conv_dims;

/* Sizes of a pool or a depthwise convolution: the output has the channels of the input. */
typedef struct {
    int32_t input_rows;
    int32_t input_cols;
    int32_t channels;
    int32_t output_cols;
} mcud_plane_dims;

/* Sizes of a pointwise convolution, which computes an output pixel from one input pixel. */
typedef struct {
    int32_t input_channels;
    int32_t output_cols;
    int32_t output_channels;
} mcud_pixel_dims;

/* The window of a convolution or a pool, and how it slides. */
typedef struct {
    int32_t kernel_rows;
    int32_t kernel_cols;
    int32_t stride_rows;
    int32_t stride_cols;
    int32_t dilation_rows;
    int32_t dilation_cols;
    int32_t pad_top;
    int32_t pad_left;
} mcud_window;

/* How a window of fixed size slides. */
typedef struct {
    int32_t stride_rows;
    int32_t stride_cols;
    int32_t pad_top;
    int32_t pad_left;
} mcud_window_steps;

/* The loops of an operator with two operands. Steps count elements, and are 0 along axes where the operand
 * broadcasts. */
typedef struct {
    int32_t cols;
    int32_t channels;
    int32_t a_row_step;
    int32_t a_col_step;
    int32_t a_channel_step; /* 0 or 1 */
    int32_t b_row_step;
    int32_t b_col_step;
    int32_t b_channel_step; /* 0 or 1 */
} mcud_broadcast;

/* The output's quantisation, with one scale: zero_point + sum * multiplier / 2^shift, see mcud_quant.h. */
typedef struct {
    int32_t zero_point; /* -128..127 */
    int32_t multiplier;
    int32_t shift; /* 1..62 */
} mcud_quant;

/* The output's quantisation, with a multiplier for each channel, which is among the packed constants:
 * zero_point + sum * 2^left_shift * multiplier / 2^32. The shift is 0 except for scales of 0.5 and more. If results are
 * rounded twice, scales of 0.25 and more and results of 2^18 and more may have one, too; see conv_twice.py. */
typedef struct {
    int32_t left_shift; /* 0..30 */
    int32_t zero_point; /* -128..127 */
} mcud_channel_quant;

/* The output's quantisation of a sum of two operands: zero_point + (a * a_multiplier + b * b_multiplier + constant)
 * / 2^shift, see add_s8.h. */
typedef struct {
    int32_t a_multiplier;
    int32_t b_multiplier; /* negative for a subtraction */
    int32_t constant;
    int32_t shift;      /* 1..30 */
    int32_t zero_point; /* -128..127 */
} mcud_sum_quant;

/* How 16-bit results of sums are rounded. */
enum {
    MCUD_TIES_UP,    /* once, halves up; see mcud_scale_wide */
    MCUD_TIES_AWAY,  /* once, halves away from zero; see mcud_scale_away */
    MCUD_TIES_TWICE, /* twice, see mcud_scale_twice; the channels' shifts are exponents */
};

/* The output's quantisation of sums of up to 48 bits, see mcud_quant_s16.h: each channel has a multiplier and a shift,
 * which are among the packed constants. */
typedef struct {
    int32_t left_shift; /* 0..32; not 0 only for scales of 0.25 and more */
    int32_t ties;       /* MCUD_TIES_... */
} mcud_wide_quant;

/* The fused activation narrows 16-bit results to [min, max]: [-32768, 32767] for none. */
typedef struct {
    int32_t min;
    int32_t max;
} mcud_act_s16;

/* The fused activation narrows int8 results to [min, max]: [-128, 127] for none. */
typedef struct {
    int32_t min;
    int32_t max;
} mcud_act_s8;

/* The fused activation narrows float results to [min, max]: [-infinity, infinity] for none; a NaN stays. */
typedef struct {
    float min;
    float max;
} mcud_act_f32;

/* The steps of a recurrent network of floats, and the options of its cells. */
typedef struct {
    int32_t steps;
    int32_t inputs;
    int32_t hidden;
    int32_t reverse; /* 0 or 1 */
    int32_t result;  /* 0: h of every step; 1: the last h; 2: the last c */
    int32_t reset_after; /* 0 or 1: the reset gate applies to the product with h */
    int32_t states;      /* 0; 1: in[1] is the initial h; 2: in[2] is also the initial c */
    int32_t keeps;       /* 0 or 1: in[1] and in[2] receive the states after the last step */
    float cell_clip; /* c stays in [-cell_clip, cell_clip] */
    int32_t saturates; /* 0 or 1: a gate that is NaN or beyond FLT_MAX is FLT_MAX to its function */
} mcud_cell_f32;

enum {
    MCUD_CURVE_LINE,      /* alpha * x + beta, in [min, max] */
    MCUD_CURVE_SIGMOID,   /* 1 / (1 + exp(-x)) */
    MCUD_CURVE_TANH,      /* alpha * tanh(beta * x) */
    MCUD_CURVE_LEAKY,     /* x, or alpha * x below 0 */
    MCUD_CURVE_ELU,       /* x, or alpha * (exp(x) - 1) below 0 */
    MCUD_CURVE_THRESHOLD, /* x above alpha, else 0 */
    MCUD_CURVE_SOFTSIGN,  /* x / (1 + |x|) */
};

/* A function in the cells of a recurrent network. */
typedef struct {
    int32_t kind; /* MCUD_CURVE_... */
    float alpha;
    float beta;
    float min;
    float max;
} mcud_curve_f32;

/* Heads, and the layout of their rows of keys and values. */
typedef struct {
    int32_t heads;
    int32_t group; /* heads that share keys and values */
    int32_t depth; /* values of a query and of a key */
    int32_t width; /* values of a result */
    int32_t key_pitch; /* values from a row to the next */
    int32_t key_head;  /* values from a head to the next */
    int32_t value_pitch;
    int32_t value_head;
    float scale; /* of scores */
} mcud_attend_heads;

/* Of `count` rows, those in [first + first_step * position, end + end_step * position) are live. */
typedef struct {
    int32_t count;
    int32_t first;
    int32_t first_step;
    int32_t end;
    int32_t end_step;
} mcud_live_rows;

/* The number of scales from a row to the next one, and from a head to the next one; 0 if all share a scale. */
typedef struct {
    int32_t pitch;
    int32_t head;
} mcud_row_scales;

#endif
