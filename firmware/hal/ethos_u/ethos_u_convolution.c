/* Convolutions of the functional model: weights in the order of their stream, each for several output pixels at once.
 *
 * A stream has the weights by blocks of output channels. For each such block, and for each group of pixels that fits
 * the accumulators, the model reads the stream from the start of the block, as a unit does.
 */
#include <string.h>

#include "ethos_u_unit.h"

enum {
    OUTPUTS = MCUD_NPU_MACS == 32 ? 4 : 8, /* channels of outputs that a unit multiplies at once */
    SUBKERNEL = 8,                         /* rows and columns of a kernel that a unit takes at once */
    SCALE_BYTES = 10,
    ACCUMULATE_40 = 1
};

typedef struct {
    mcud_npu_map ifm;
    mcud_npu_map ofm;
    mcud_npu_shape output;
    mcud_npu_window window;
    uint32_t input_depth;
    bool depthwise;
    uint32_t first_channel; /* of a block of outputs */
    uint32_t channels;
    uint32_t first_pixel;
    uint32_t pixels;
    mcud_npu_weights weights;
} convolution;

static convolution the_convolution;
static mcud_npu_weights start_of_block;
static int64_t sums[MCUD_NPU_ACCUMULATORS];

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t round_up(uint32_t value, uint32_t step)
{
    return (value + step - 1u) / step * step;
}

/* Where weights of a group belong: channels from output.c and input.c on, at one element of the kernel. */
typedef struct {
    uint32_t output;
    uint32_t input;
    int32_t ky;
    int32_t kx;
} group;

static int32_t add_pixel(mcud_npu_unit *unit, const group *it, const int16_t *weights, uint32_t pixel)
{
    const convolution *conv = &the_convolution;
    const uint32_t outputs = least(OUTPUTS, conv->channels - it->output);
    const uint32_t number = conv->first_pixel + pixel;
    const mcud_npu_place output = {number / conv->output.width, number % conv->output.width, 0};
    mcud_npu_place at = {0, 0, conv->depthwise ? conv->first_channel + it->output : it->input};
    const uint32_t inputs = conv->depthwise ? outputs : least(MCUD_NPU_CHANNELS, conv->input_depth - it->input);
    int64_t values[MCUD_NPU_CHANNELS];
    int64_t *sum = sums + (size_t)pixel * conv->channels + it->output;
    if (!mcud_npu_under(&conv->window, output, it->ky, it->kx, &at)) {
        return MCUD_NPU_DONE;
    }
    const int32_t code = mcud_npu_load(unit, &conv->ifm, at, inputs, values);
    if (code != MCUD_NPU_DONE) {
        return code;
    }
    for (uint32_t o = 0; o < outputs; o++) {
        if (conv->depthwise) {
            sum[o] += values[o] * weights[o];
            continue;
        }
        int64_t total = 0;
        for (uint32_t i = 0; i < inputs; i++) {
            total += values[i] * weights[o * MCUD_NPU_CHANNELS + i];
        }
        sum[o] += total;
    }
    return MCUD_NPU_DONE;
}

/* Takes the weights of a group from the stream, and adds their products to the pixels. */
static int32_t add_group(mcud_npu_unit *unit, const group *it, bool padding)
{
    convolution *conv = &the_convolution;
    int16_t weights[OUTPUTS * MCUD_NPU_CHANNELS];
    const uint32_t count = conv->depthwise ? OUTPUTS : OUTPUTS * MCUD_NPU_CHANNELS;
    bool zero = true;
    if (!mcud_npu_next_weights(&conv->weights, weights, count)) {
        return MCUD_NPU_BAD_WEIGHTS;
    }
    unit->steps++;
    for (uint32_t i = 0; i < count; i++) {
        zero = zero && weights[i] == 0;
    }
    int32_t code = unit->steps > MCUD_NPU_STEPS ? MCUD_NPU_TIMEOUT : MCUD_NPU_DONE;
    if (zero || padding) {
        return code;
    }
    for (uint32_t pixel = 0; pixel < conv->pixels && code == MCUD_NPU_DONE; pixel++) {
        code = add_pixel(unit, it, weights, pixel);
    }
    return code;
}

typedef struct {
    int32_t y;
    int32_t x;
    int32_t height;
    int32_t width;
    int32_t elements; /* with the padding of the last group */
} subkernel;

static subkernel subkernel_at(int32_t y, int32_t x)
{
    const convolution *conv = &the_convolution;
    const mcud_npu_window *window = &conv->window;
    const uint32_t height = least((uint32_t)(window->kernel_height - y), (uint32_t)(SUBKERNEL / window->dilation_y));
    const uint32_t width = least((uint32_t)(window->kernel_width - x), (uint32_t)(SUBKERNEL / window->dilation_x));
    uint32_t elements = height * width;
    if (conv->depthwise) {
        elements = round_up(elements, 4u);
    } else if (window->part_kernel_first) {
        elements = round_up(elements, conv->ifm.element_bytes == 2u ? 2u : 4u);
    }
    return (subkernel){y, x, (int32_t)height, (int32_t)width, (int32_t)elements};
}

/* Adds the input channels [first, end) of a subkernel. Depth-first streams iterate channels inside each element,
 * part-kernel-first streams iterate all elements inside the channels. */
static int32_t add_subkernel(mcud_npu_unit *unit, const subkernel *sub, uint32_t first, uint32_t end)
{
    const convolution *conv = &the_convolution;
    const bool around = conv->window.part_kernel_first && !conv->depthwise;
    const uint32_t step = around ? MCUD_NPU_CHANNELS : end - first;
    int32_t code = MCUD_NPU_DONE;
    for (uint32_t outer = first; outer < end; outer += step) {
        for (uint32_t output = 0; output < conv->channels; output += OUTPUTS) {
            for (int32_t element = 0; element < sub->elements; element++) {
                const uint32_t stop = around ? outer + 1u : end;
                for (uint32_t input = outer; input < stop && code == MCUD_NPU_DONE; input += MCUD_NPU_CHANNELS) {
                    const group it = {output, input, sub->y + element / sub->width, sub->x + element % sub->width};
                    code = add_group(unit, &it, element >= sub->height * sub->width || input >= conv->input_depth);
                }
            }
        }
        if (code != MCUD_NPU_DONE) {
            break;
        }
    }
    return code;
}

/* Adds all weights of a block of outputs to the pixels of a pass. */
static int32_t add_block(mcud_npu_unit *unit)
{
    const convolution *conv = &the_convolution;
    const mcud_npu_window *window = &conv->window;
    const bool part = window->part_kernel_first;
    const uint32_t block = part || conv->ifm.element_bytes == 2u ? 16u : 32u;
    const uint32_t depth = conv->depthwise ? 1u : conv->input_depth;
    for (uint32_t input = 0; input < depth; input += block) {
        const uint32_t all = part ? least(block, depth - input) : block;
        const uint32_t end = input + (conv->depthwise ? 1u : all);
        for (int32_t y = 0; y < window->kernel_height; y += SUBKERNEL / window->dilation_y) {
            for (int32_t x = 0; x < window->kernel_width; x += SUBKERNEL / window->dilation_x) {
                const subkernel sub = subkernel_at(y, x);
                const int32_t code = add_subkernel(unit, &sub, input, end);
                if (code != MCUD_NPU_DONE) {
                    return code;
                }
            }
        }
    }
    return MCUD_NPU_DONE;
}

/* The record of a channel has a bias of 40 bits, a scale of 32 and a shift of 6. */
static int32_t finish_channel(mcud_npu_unit *unit, uint32_t channel, const uint8_t *record)
{
    const convolution *conv = &the_convolution;
    const int64_t limit = INT64_C(1) << (mcud_npu_small(unit, NPU_ACC_FORMAT) == ACCUMULATE_40 ? 39 : 31);
    uint64_t bias = 0;
    uint32_t scale = 0;
    for (uint32_t i = 0; i < 5u; i++) {
        bias |= (uint64_t)record[i] << (8u * i);
    }
    for (uint32_t i = 0; i < 4u; i++) {
        scale |= (uint32_t)record[5u + i] << (8u * i);
    }
    const int64_t added = (int64_t)(bias ^ (UINT64_C(1) << 39)) - (INT64_C(1) << 39);
    for (uint32_t pixel = 0; pixel < conv->pixels; pixel++) {
        const uint32_t number = conv->first_pixel + pixel;
        const mcud_npu_place at = {number / conv->output.width, number % conv->output.width,
                                   conv->first_channel + channel};
        const int64_t sum = sums[(size_t)pixel * conv->channels + channel] + added;
        if (sum < -limit || sum >= limit) {
            return MCUD_NPU_OVERFLOW;
        }
        const int64_t scaled = mcud_npu_scaled(sum, scale, record[9] & 63u, mcud_npu_rounding(unit));
        const int32_t code = mcud_npu_store(unit, &conv->ofm, at, scaled);
        if (code != MCUD_NPU_DONE) {
            return code;
        }
    }
    return MCUD_NPU_DONE;
}

static int32_t finish_pixels(mcud_npu_unit *unit)
{
    const convolution *conv = &the_convolution;
    const uint64_t first = (uint64_t)conv->first_channel * SCALE_BYTES;
    const uint64_t size = (uint64_t)conv->channels * SCALE_BYTES;
    const uint8_t *records = mcud_npu_read(unit, mcud_npu_small(unit, NPU_SCALE_REGION),
                                           mcud_npu_large(unit, NPU_SCALE_BASE) + first, size);
    if (records == NULL || first + size > mcud_npu_scale(unit, NPU_SCALE_LENGTH)) {
        return MCUD_NPU_OUTSIDE;
    }
    int32_t code = MCUD_NPU_DONE;
    for (uint32_t channel = 0; channel < conv->channels && code == MCUD_NPU_DONE; channel++) {
        code = finish_channel(unit, channel, records + (size_t)channel * SCALE_BYTES);
    }
    return code;
}

static int32_t prepare(mcud_npu_unit *unit, bool depthwise)
{
    convolution *conv = &the_convolution;
    const uint32_t length = mcud_npu_scale(unit, NPU_WEIGHT_LENGTH);
    const int32_t codes[] = {mcud_npu_map_of(unit, MCUD_NPU_IFM, &conv->ifm),
                             mcud_npu_map_of(unit, MCUD_NPU_OFM, &conv->ofm),
                             mcud_npu_output_shape(unit, &conv->ofm, &conv->output),
                             mcud_npu_window_of(unit, conv->output, &conv->window)};
    for (uint32_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i] != MCUD_NPU_DONE) {
            return codes[i];
        }
    }
    conv->depthwise = depthwise;
    conv->input_depth = depthwise ? conv->output.depth : mcud_npu_small(unit, NPU_IFM_DEPTH) + 1u;
    if (conv->ifm.element_bytes > 2u || mcud_npu_small(unit, NPU_ACC_FORMAT) > ACCUMULATE_40 ||
        (mcud_npu_small(unit, NPU_OFM_PRECISION) & 0x100u) != 0u) {
        return MCUD_NPU_UNSUPPORTED;
    }
    if (mcud_npu_rounding(unit) > MCUD_NPU_NATURAL || mcud_npu_small(unit, NPU_OFM_BLK_DEPTH) >= 128u) {
        return MCUD_NPU_BAD_COMMAND;
    }
    const uint8_t *bytes = mcud_npu_read(unit, mcud_npu_small(unit, NPU_WEIGHT_REGION),
                                         mcud_npu_large(unit, NPU_WEIGHT_BASE), length);
    if (bytes == NULL) {
        return MCUD_NPU_OUTSIDE;
    }
    mcud_npu_open_weights(&conv->weights, bytes, length);
    return MCUD_NPU_DONE;
}

int32_t mcud_npu_convolve(mcud_npu_unit *unit, bool depthwise)
{
    convolution *conv = &the_convolution;
    int32_t code = prepare(unit, depthwise);
    if (code != MCUD_NPU_DONE) {
        return code;
    }
    const uint32_t block = mcud_npu_small(unit, NPU_OFM_BLK_DEPTH) + 1u;
    const uint32_t total = conv->output.height * conv->output.width;
    for (conv->first_channel = 0; conv->first_channel < conv->output.depth; conv->first_channel += block) {
        start_of_block = conv->weights;
        conv->channels = least(block, conv->output.depth - conv->first_channel);
        const uint32_t pass = MCUD_NPU_ACCUMULATORS / conv->channels;
        for (conv->first_pixel = 0; conv->first_pixel < total; conv->first_pixel += conv->pixels) {
            conv->weights = start_of_block;
            conv->pixels = least(pass, total - conv->first_pixel);
            memset(sums, 0, sizeof sums[0] * conv->pixels * conv->channels);
            code = add_block(unit);
            if (code == MCUD_NPU_DONE) {
                code = finish_pixels(unit);
            }
            if (code != MCUD_NPU_DONE) {
                return code;
            }
        }
    }
    return MCUD_NPU_DONE;
}
