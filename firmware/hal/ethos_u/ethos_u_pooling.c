/* Pooling of the functional model: the largest, the mean, and the sum over channels. */
#include "ethos_u_unit.h"

enum { LARGEST = 0, MEAN = 1, SUM_OF_CHANNELS = 2, GLOBAL_SCALE = 0x100 };

typedef struct {
    mcud_npu_map ifm;
    mcud_npu_map ofm;
    mcud_npu_shape output;
    mcud_npu_window window;
    uint32_t mode;
    uint32_t input_depth;
    bool padded;
} pooling;

typedef struct {
    int64_t value;
    uint32_t count; /* of elements that are not in the padding */
} pooled;

static uint32_t bit_length(uint32_t value)
{
    uint32_t length = 0;
    for (; value != 0u; value >>= 1) {
        length++;
    }
    return length;
}

static int32_t pool_window(mcud_npu_unit *unit, const pooling *pool, mcud_npu_place place, pooled *result)
{
    mcud_npu_place at = {0, 0, place.c};
    int64_t value;
    *result = (pooled){pool->mode == LARGEST ? INT32_MIN : 0, 0};
    for (int32_t ky = 0; ky < pool->window.kernel_height; ky++) {
        for (int32_t kx = 0; kx < pool->window.kernel_width; kx++) {
            if (!mcud_npu_under(&pool->window, place, ky, kx, &at)) {
                unit->steps++;
                continue;
            }
            const int32_t code = mcud_npu_load(unit, &pool->ifm, at, 1, &value);
            if (code != MCUD_NPU_DONE) {
                return code;
            }
            if (pool->mode == MEAN) {
                result->value += value;
            } else if (value > result->value) {
                result->value = value;
            }
            result->count++;
        }
    }
    return unit->steps > MCUD_NPU_STEPS ? MCUD_NPU_TIMEOUT : MCUD_NPU_DONE;
}

static int32_t sum_channels(mcud_npu_unit *unit, const pooling *pool, mcud_npu_place place, pooled *result)
{
    *result = (pooled){0, 1};
    for (place.c = 0; place.c < pool->input_depth; place.c++) {
        int64_t value;
        const int32_t code = mcud_npu_load(unit, &pool->ifm, place, 1, &value);
        if (code != MCUD_NPU_DONE) {
            return code;
        }
        result->value += value;
    }
    return MCUD_NPU_DONE;
}

/* Scales a result by the scale of the operation; but under padding the unit divides a sum by the number of its
 * elements. */
static int64_t pooled_result(const mcud_npu_unit *unit, const pooling *pool, const pooled *it)
{
    const uint32_t rounding = mcud_npu_rounding(unit);
    const bool global = (mcud_npu_small(unit, NPU_OFM_PRECISION) & GLOBAL_SCALE) != 0u;
    if ((global && !(pool->mode == MEAN && pool->padded)) || pool->mode == SUM_OF_CHANNELS) {
        return mcud_npu_scaled(it->value, mcud_npu_scale(unit, NPU_OFM_SCALE), mcud_npu_shift(unit, NPU_OFM_SCALE),
                               rounding);
    }
    if (pool->mode == LARGEST || it->count < 2u) {
        return it->value;
    }
    const uint32_t length = bit_length(it->count - 1u);
    const uint64_t scale = ((UINT64_C(1) << (31u + length)) + (UINT64_C(1) << length)) / it->count;
    return mcud_npu_scaled(it->value, (uint32_t)scale, 31u + length, rounding);
}

static int32_t pool_pixel(mcud_npu_unit *unit, const pooling *pool, mcud_npu_place place)
{
    for (place.c = 0; place.c < pool->output.depth; place.c++) {
        pooled result;
        int32_t code = pool->mode == SUM_OF_CHANNELS ? sum_channels(unit, pool, place, &result)
                                                     : pool_window(unit, pool, place, &result);
        if (code == MCUD_NPU_DONE) {
            code = mcud_npu_store(unit, &pool->ofm, place, pooled_result(unit, pool, &result));
        }
        if (code != MCUD_NPU_DONE) {
            return code;
        }
    }
    return MCUD_NPU_DONE;
}

int32_t mcud_npu_pool(mcud_npu_unit *unit, uint32_t mode)
{
    pooling pool;
    pool.mode = mode;
    pool.input_depth = mcud_npu_small(unit, NPU_IFM_DEPTH) + 1u;
    pool.padded = (mcud_npu_small(unit, NPU_IFM_PAD_TOP) | mcud_npu_small(unit, NPU_IFM_PAD_LEFT) |
                   mcud_npu_small(unit, NPU_IFM_PAD_BOTTOM) | mcud_npu_small(unit, NPU_IFM_PAD_RIGHT)) != 0u;
    int32_t code = mcud_npu_map_of(unit, MCUD_NPU_IFM, &pool.ifm);
    if (code == MCUD_NPU_DONE) {
        code = mcud_npu_map_of(unit, MCUD_NPU_OFM, &pool.ofm);
    }
    if (code == MCUD_NPU_DONE) {
        code = mcud_npu_output_shape(unit, &pool.ofm, &pool.output);
    }
    if (code == MCUD_NPU_DONE) {
        code = mcud_npu_window_of(unit, pool.output, &pool.window);
    }
    if (mode > SUM_OF_CHANNELS || mcud_npu_rounding(unit) > MCUD_NPU_NATURAL) {
        return MCUD_NPU_BAD_COMMAND;
    }
    if (code == MCUD_NPU_DONE && ((mode != SUM_OF_CHANNELS && pool.ifm.element_bytes == 4u) ||
                                  (mode == MEAN && pool.padded && mcud_npu_scale(unit, NPU_OFM_SCALE) > 1u))) {
        return MCUD_NPU_UNSUPPORTED; /* pools of 32 bits, and a scale beside that of the mean */
    }
    mcud_npu_place place = {0, 0, 0};
    for (; place.y < pool.output.height && code == MCUD_NPU_DONE; place.y++) {
        for (place.x = 0; place.x < pool.output.width && code == MCUD_NPU_DONE; place.x++) {
            code = pool_pixel(unit, &pool, place);
        }
    }
    return code;
}
