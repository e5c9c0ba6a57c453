/* The path of a result in the functional model: scale, zero point, clip, table, memory. */
#include "ethos_u_unit.h"

enum { TANH = 3, LOGISTIC = 4, TABLE = 16, TABLES = 8, CLIP_AS_OUTPUT = 0, CLIP_UINT8 = 2, CLIP_INT8 = 3, CLIP_INT16 = 5 };

#define LARGEST (INT64_C(1) << 62)

/* Rounds the magnitude. For negative values it subtracts 1 before the shift, unless halves go away from zero. */
int64_t mcud_npu_scaled(int64_t value, uint32_t scale, uint32_t shift, uint32_t rounding)
{
    const uint64_t magnitude = value < 0 ? 0u - (uint64_t)value : (uint64_t)value;
    uint64_t low = (magnitude & UINT32_MAX) * scale;
    uint64_t high = (magnitude >> 32) * scale + (low >> 32);
    low &= UINT32_MAX;
    if (shift > 0u && rounding != MCUD_NPU_TRUNCATE) {
        if (shift > 32u) {
            high += UINT64_C(1) << (shift - 33u);
        } else {
            low += UINT64_C(1) << (shift - 1u);
        }
        if (rounding == MCUD_NPU_TWICE && shift > 31u) {
            low += UINT64_C(1) << 30; /* rounds the upper 32 bits of the product, before the rest of the shift */
        }
        if (value < 0 && rounding != MCUD_NPU_AWAY) {
            high -= low == 0u ? 1u : 0u;
            low = low == 0u ? UINT32_MAX : low - 1u;
        }
        high += low >> 32;
        low &= UINT32_MAX;
    }
    uint64_t result = LARGEST;
    if (shift >= 32u) {
        result = high >> (shift - 32u);
    } else if (high >> (30u + shift) == 0u) {
        result = (high << (32u - shift)) | (low >> shift);
    }
    const int64_t absolute = result < (uint64_t)LARGEST ? (int64_t)result : LARGEST;
    return value < 0 ? -absolute : absolute;
}

uint32_t mcud_npu_rounding(const mcud_npu_unit *unit)
{
    return mcud_npu_small(unit, NPU_OFM_PRECISION) >> 14;
}

static int64_t clip(int64_t value, int64_t lowest, int64_t highest)
{
    return value < lowest ? lowest : value > highest ? highest : value;
}

/* Clips to the range of the activation and of its type. */
static int64_t activated(const mcud_npu_unit *unit, const mcud_npu_map *ofm, int64_t value)
{
    const uint32_t range = (mcud_npu_small(unit, NPU_ACTIVATION) >> 12) & 7u;
    const bool is_signed = range == CLIP_AS_OUTPUT ? ofm->is_signed : range != CLIP_UINT8;
    const uint32_t lowest = mcud_npu_small(unit, NPU_ACTIVATION_MIN);
    const uint32_t highest = mcud_npu_small(unit, NPU_ACTIVATION_MAX);
    if (range == CLIP_AS_OUTPUT && ofm->element_bytes == 4u) {
        return clip(value, INT32_MIN, INT32_MAX);
    }
    if (is_signed) {
        value = clip(value, (int16_t)lowest, (int16_t)highest);
        return range == CLIP_INT8 || (range == CLIP_AS_OUTPUT && ofm->element_bytes == 1u)
                   ? clip(value, INT8_MIN, INT8_MAX)
                   : clip(value, INT16_MIN, INT16_MAX);
    }
    value = clip(value, lowest, highest);
    return range == CLIP_UINT8 || ofm->element_bytes == 1u ? clip(value, 0, UINT8_MAX) : clip(value, 0, UINT16_MAX);
}

static uint32_t word(const uint8_t *bytes)
{
    return bytes[0] | ((uint32_t)bytes[1] << 8) | ((uint32_t)bytes[2] << 16) | ((uint32_t)bytes[3] << 24);
}

/* A table has 256 results of 8 or 32 bits, or 512 segments of a line, each for 128 values. */
static int64_t looked_up(const mcud_npu_unit *unit, const mcud_npu_map *ofm, uint32_t table, int64_t value)
{
    const uint32_t index = (uint32_t)(value + 128) & 0xFFu;
    if (ofm->element_bytes == 1u) {
        const uint8_t result = unit->tables[table * 256u + (ofm->is_signed ? index : (uint32_t)value & 0xFFu)];
        return ofm->is_signed ? (int8_t)result : (int64_t)result;
    }
    if (ofm->element_bytes == 4u) {
        return (int32_t)word(unit->tables + (table % 2u) * 1024u + 4u * index);
    }
    const uint32_t line = word(unit->tables + 4u * (((uint32_t)(value + 32768) >> 7) & 511u));
    const int32_t slope = (int16_t)(line >> 16);
    return (int16_t)line + mcud_npu_scaled((int64_t)slope * (value & 127), 1, 7, MCUD_NPU_NATURAL);
}

int32_t mcud_npu_store(mcud_npu_unit *unit, const mcud_npu_map *ofm, mcud_npu_place at, int64_t value)
{
    const uint32_t activation = mcud_npu_small(unit, NPU_ACTIVATION) & 31u;
    const bool curve = activation == TANH || activation == LOGISTIC;
    const bool lookup = activation >= TABLE && activation < TABLE + TABLES;
    if ((activation != 0u && !curve && !lookup) || (curve && ofm->element_bytes != 2u)) {
        return MCUD_NPU_UNSUPPORTED;
    }
    if (curve) {
        value = activation == TANH ? mcud_npu_tanh(value) : mcud_npu_logistic(value);
    }
    int64_t result = activated(unit, ofm, value + ofm->zero_point);
    if (lookup) {
        result = looked_up(unit, ofm, activation - TABLE, result);
    }
    uint8_t *bytes = mcud_npu_write(unit, ofm->region, mcud_npu_address(ofm, at), ofm->element_bytes);
    if (bytes == NULL) {
        return MCUD_NPU_OUTSIDE;
    }
    for (uint32_t i = 0; i < ofm->element_bytes; i++) {
        bytes[i] = (uint8_t)((uint64_t)result >> (8u * i));
    }
    return MCUD_NPU_DONE;
}
