/* Elementwise operations of the functional model, of one input or of two. */
#include "ethos_u_unit.h"

enum { MUL = 0, ADD = 1, SUB = 2, MIN = 3, MAX = 4, LRELU = 5, ABS = 6, CLZ = 7, SHR = 8, SHL = 9 };
enum { BROADCAST_H = 1, BROADCAST_W = 2, BROADCAST_C = 4, REVERSED = 0x40, SCALAR = 0x80, GLOBAL_SCALE = 0x100 };
enum { SCALE_BOTH = 0, SCALE_A = 1, SCALE_B = 2 };

typedef struct {
    mcud_npu_map ifm;
    mcud_npu_map ifm2;
    mcud_npu_map ofm;
    uint32_t mode;
    uint32_t broadcast;
    uint32_t scaled; /* which operands have a scale of 32 bits */
    bool unary;
} elementwise;

static int32_t load_second(mcud_npu_unit *unit, const elementwise *it, mcud_npu_place at, int64_t *value)
{
    const uint32_t scalar = mcud_npu_small(unit, NPU_IFM2_SCALAR);
    if ((it->broadcast & SCALAR) != 0u) {
        *value = (it->ifm2.is_signed ? (int16_t)scalar : (int64_t)scalar) - it->ifm2.zero_point;
        return MCUD_NPU_DONE;
    }
    at.y = (it->broadcast & BROADCAST_H) != 0u ? 0u : at.y;
    at.x = (it->broadcast & BROADCAST_W) != 0u ? 0u : at.x;
    at.c = (it->broadcast & BROADCAST_C) != 0u ? 0u : at.c;
    return mcud_npu_load(unit, &it->ifm2, at, 1, value);
}

/* An operand of a sum at the common scale: the smaller scale has a factor, the larger one a shift. TFLite first shifts
 * left; the factor's shift leaves that out, so that a product is rounded twice, as in TFLite.
 */
static int64_t at_common_scale(const mcud_npu_unit *unit, const elementwise *it, int64_t value, uint32_t operand)
{
    const uint32_t shift = it->ifm.element_bytes == 1u ? 20u : 15u;
    if (it->ifm.element_bytes == 4u) {
        return value;
    }
    if (it->scaled == SCALE_BOTH) {
        return value * (int64_t)(uint16_t)mcud_npu_scale(unit, operand == SCALE_A ? NPU_OPA_SCALE : NPU_OPB_SCALE);
    }
    if (it->scaled == operand) {
        return mcud_npu_scaled(value * (INT64_C(1) << shift), mcud_npu_scale(unit, NPU_OPA_SCALE),
                               mcud_npu_shift(unit, NPU_OPA_SCALE) + shift, MCUD_NPU_TWICE);
    }
    return value * (INT64_C(1) << (shift - 1u));
}

static int64_t leading_zeros(int64_t value)
{
    int64_t count = 32;
    for (; value > 0 && count > 0; value >>= 1) {
        count--;
    }
    return value < 0 ? 0 : count;
}

/* The result before its scaling; `known` becomes false where no public text says what a unit computes. */
static int64_t combined(const mcud_npu_unit *unit, const elementwise *it, const int64_t *operands, bool *known)
{
    const int64_t a = operands[0];
    const int64_t b = operands[1];
    const uint32_t rounding = mcud_npu_rounding(unit);
    switch (it->mode) {
    case MUL:
        return a * b;
    case ADD:
        return at_common_scale(unit, it, a, SCALE_A) + at_common_scale(unit, it, b, SCALE_B);
    case SUB:
        return at_common_scale(unit, it, a, SCALE_A) - at_common_scale(unit, it, b, SCALE_B);
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    case ABS:
        return a < 0 ? -a : a;
    case CLZ:
        return leading_zeros(a);
    case SHR:
        *known = b >= 0 && b < 32 && rounding != MCUD_NPU_TRUNCATE;
        return *known ? mcud_npu_scaled(a, 1, (uint32_t)b, rounding == MCUD_NPU_TWICE ? MCUD_NPU_AWAY : rounding) : 0;
    case SHL:
        *known = b >= 0 && b < 32;
        return *known ? (int32_t)((uint32_t)a << (uint32_t)b) : 0;
    default:
        *known = false;
        return 0;
    }
}

static int64_t scaled_result(const mcud_npu_unit *unit, const elementwise *it, int64_t value)
{
    const bool global = (mcud_npu_small(unit, NPU_OFM_PRECISION) & GLOBAL_SCALE) != 0u;
    const bool of_64_bits = it->mode == MUL && it->ifm.element_bytes == 4u; /* it has a shift, but no scale */
    const uint32_t scale = of_64_bits ? 1u : mcud_npu_scale(unit, NPU_OFM_SCALE);
    if (!global && it->mode > SUB) {
        return value;
    }
    return mcud_npu_scaled(value, scale, mcud_npu_shift(unit, NPU_OFM_SCALE), mcud_npu_rounding(unit));
}

static int32_t element(mcud_npu_unit *unit, const elementwise *it, mcud_npu_place at)
{
    int64_t operands[2] = {0, 0};
    bool known = true;
    int32_t code = mcud_npu_load(unit, &it->ifm, at, 1, &operands[0]);
    if (code == MCUD_NPU_DONE && !it->unary) {
        code = load_second(unit, it, at, &operands[1]);
    }
    if (code != MCUD_NPU_DONE) {
        return code;
    }
    if (!it->unary && (it->broadcast & REVERSED) != 0u) {
        const int64_t first = operands[0];
        operands[0] = operands[1];
        operands[1] = first;
    }
    const int64_t value = combined(unit, it, operands, &known);
    return known ? mcud_npu_store(unit, &it->ofm, at, scaled_result(unit, it, value)) : MCUD_NPU_UNSUPPORTED;
}

int32_t mcud_npu_elementwise(mcud_npu_unit *unit, uint32_t mode)
{
    elementwise it;
    mcud_npu_shape output = {0, 0, 0};
    it.mode = mode;
    it.unary = mode == ABS || mode == CLZ || mode == LRELU;
    it.broadcast = it.unary ? 0u : mcud_npu_small(unit, NPU_IFM2_BROADCAST);
    it.scaled = (mcud_npu_small(unit, NPU_IFM_PRECISION) >> 8) & 3u;
    int32_t code = mcud_npu_map_of(unit, MCUD_NPU_IFM, &it.ifm);
    if (code == MCUD_NPU_DONE) {
        code = mcud_npu_map_of(unit, MCUD_NPU_OFM, &it.ofm);
    }
    if (code == MCUD_NPU_DONE && !it.unary) {
        code = mcud_npu_map_of(unit, MCUD_NPU_IFM2, &it.ifm2);
    }
    if (code == MCUD_NPU_DONE) {
        code = mcud_npu_output_shape(unit, &it.ofm, &output);
    }
    if (mode > SHL || it.scaled > SCALE_B || mcud_npu_rounding(unit) > MCUD_NPU_NATURAL) {
        return MCUD_NPU_BAD_COMMAND;
    }
    mcud_npu_place at = {0, 0, 0};
    for (; at.y < output.height && code == MCUD_NPU_DONE; at.y++) {
        for (at.x = 0; at.x < output.width && code == MCUD_NPU_DONE; at.x++) {
            for (at.c = 0; at.c < output.depth && code == MCUD_NPU_DONE; at.c++) {
                code = element(unit, &it, at);
            }
        }
    }
    return code;
}
