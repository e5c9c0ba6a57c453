/* Feature maps of the functional model: their addresses, and the kernel that slides over one. */
#include "ethos_u_unit.h"

enum { BRICK = 16, UPSCALE_ZEROS = 2, MOST_ELEMENTS = 1 << 16 };

#define ADDRESS_BITS UINT64_C(0xFFFFFFFFFF)

static const uint32_t precisions[] = {NPU_IFM_PRECISION, NPU_IFM2_PRECISION, NPU_OFM_PRECISION};
static const uint32_t zero_points[] = {NPU_IFM_ZERO_POINT, NPU_IFM2_ZERO_POINT, NPU_OFM_ZERO_POINT};
static const uint32_t first_tiles[] = {NPU_IFM_WIDTH0, NPU_IFM2_WIDTH0, NPU_OFM_WIDTH0};
static const uint32_t first_bases[] = {NPU_IFM_BASE0, NPU_IFM2_BASE0, NPU_OFM_BASE0};

int32_t mcud_npu_map_of(const mcud_npu_unit *unit, uint32_t which, mcud_npu_map *map)
{
    const uint32_t precision = mcud_npu_small(unit, precisions[which]);
    const uint32_t zero_point = mcud_npu_small(unit, zero_points[which]);
    const uint32_t tile = first_tiles[which];
    const uint32_t base = first_bases[which];
    const uint32_t size = (precision >> (which == MCUD_NPU_OFM ? 1 : 2)) & 3u;
    for (uint32_t i = 0; i < 4u; i++) {
        map->base[i] = mcud_npu_large(unit, base + i);
    }
    map->stride_x = mcud_npu_large(unit, base + 4u);
    map->stride_y = mcud_npu_large(unit, base + 5u);
    map->stride_c = mcud_npu_large(unit, base + 6u);
    map->width_left = mcud_npu_small(unit, tile) + 1u;
    map->height_left = mcud_npu_small(unit, tile + 1u) + 1u;
    map->height_right = mcud_npu_small(unit, tile + 2u) + 1u;
    map->region = mcud_npu_small(unit, tile + 5u) % MCUD_NPU_REGIONS;
    map->element_bytes = 1u << size;
    map->is_signed = (precision & 1u) != 0u;
    map->zero_point = map->is_signed ? (int16_t)zero_point : (int32_t)zero_point;
    map->bricks = (precision & 0x40u) != 0u;
    return size == 3u || (size == 2u && !map->is_signed) ? MCUD_NPU_BAD_COMMAND : MCUD_NPU_DONE;
}

uint64_t mcud_npu_address(const mcud_npu_map *map, mcud_npu_place at)
{
    const bool right = at.x >= map->width_left;
    const uint32_t height = right ? map->height_right : map->height_left;
    const bool low = at.y >= height;
    const uint64_t y = low ? at.y - height : at.y;
    const uint64_t x = right ? at.x - map->width_left : at.x;
    const uint64_t row = map->base[(right ? 1 : 0) + (low ? 2 : 0)] + y * map->stride_y;
    const uint64_t brick = (x * BRICK + at.c % BRICK) * map->element_bytes + at.c / BRICK * map->stride_c;
    const uint64_t pixel = x * map->stride_x + (uint64_t)at.c * map->element_bytes;
    return (row + (map->bricks ? brick : pixel)) & ADDRESS_BITS; /* wraps, so that a stride may be negative */
}

static int64_t element(const mcud_npu_map *map, const uint8_t *bytes)
{
    uint32_t value = bytes[0];
    if (map->element_bytes == 1u) {
        return map->is_signed ? (int8_t)value : (int64_t)value;
    }
    value |= (uint32_t)bytes[1] << 8;
    if (map->element_bytes == 2u) {
        return map->is_signed ? (int16_t)value : (int64_t)value;
    }
    return (int32_t)(value | ((uint32_t)bytes[2] << 16) | ((uint32_t)bytes[3] << 24));
}

int32_t mcud_npu_load(mcud_npu_unit *unit, const mcud_npu_map *map, mcud_npu_place at, uint32_t count, int64_t *values)
{
    const uint64_t size = (uint64_t)count * map->element_bytes;
    const uint8_t *bytes = mcud_npu_read(unit, map->region, mcud_npu_address(map, at), size);
    unit->steps++;
    if (bytes == NULL) {
        return MCUD_NPU_OUTSIDE;
    }
    for (uint32_t i = 0; i < count; i++) {
        values[i] = element(map, bytes + (size_t)i * map->element_bytes) - map->zero_point;
    }
    return unit->steps > MCUD_NPU_STEPS ? MCUD_NPU_TIMEOUT : MCUD_NPU_DONE;
}

int32_t mcud_npu_output_shape(const mcud_npu_unit *unit, const mcud_npu_map *ofm, mcud_npu_shape *shape)
{
    shape->height = mcud_npu_small(unit, NPU_OFM_HEIGHT) + 1u;
    shape->width = mcud_npu_small(unit, NPU_OFM_WIDTH) + 1u;
    shape->depth = mcud_npu_small(unit, NPU_OFM_DEPTH) + 1u;
    const uint64_t elements = (uint64_t)shape->height * shape->width * shape->depth;
    return elements > unit->regions->size_bytes[ofm->region] / ofm->element_bytes ? MCUD_NPU_OUTSIDE : MCUD_NPU_DONE;
}

int32_t mcud_npu_window_of(const mcud_npu_unit *unit, mcud_npu_shape output, mcud_npu_window *window)
{
    const uint32_t stride = mcud_npu_small(unit, NPU_KERNEL_STRIDE);
    const int32_t reach_y = (int32_t)mcud_npu_small(unit, NPU_KERNEL_HEIGHT);
    const int32_t reach_x = (int32_t)mcud_npu_small(unit, NPU_KERNEL_WIDTH);
    window->stride_x = (int32_t)(1u + (stride & 1u) + 2u * ((stride >> 6) & 7u));
    window->stride_y = (int32_t)(1u + ((stride >> 1) & 1u) + 2u * ((stride >> 9) & 7u));
    window->part_kernel_first = (stride & 4u) != 0u;
    window->dilation_x = (stride & 8u) != 0u ? 2 : 1;
    window->dilation_y = (stride & 16u) != 0u ? 2 : 1;
    window->kernel_height = reach_y / window->dilation_y + 1;
    window->kernel_width = reach_x / window->dilation_x + 1;
    window->pad_top = (int32_t)mcud_npu_small(unit, NPU_IFM_PAD_TOP);
    window->pad_left = (int32_t)mcud_npu_small(unit, NPU_IFM_PAD_LEFT);
    window->height = (int64_t)(output.height - 1u) * window->stride_y + reach_y + 1 - window->pad_top -
                     (int64_t)mcud_npu_small(unit, NPU_IFM_PAD_BOTTOM);
    window->width = (int64_t)(output.width - 1u) * window->stride_x + reach_x + 1 - window->pad_left -
                    (int64_t)mcud_npu_small(unit, NPU_IFM_PAD_RIGHT);
    window->upscaling = mcud_npu_small(unit, NPU_IFM_UPSCALE);
    const int64_t elements = (int64_t)window->kernel_height * window->kernel_width;
    return window->upscaling > UPSCALE_ZEROS || elements > MOST_ELEMENTS ? MCUD_NPU_BAD_COMMAND : MCUD_NPU_DONE;
}

bool mcud_npu_under(const mcud_npu_window *window, mcud_npu_place output, int32_t ky, int32_t kx, mcud_npu_place *at)
{
    const int32_t y = (int32_t)output.y * window->stride_y + ky * window->dilation_y - window->pad_top;
    const int32_t x = (int32_t)output.x * window->stride_x + kx * window->dilation_x - window->pad_left;
    if (y < 0 || x < 0 || y >= window->height || x >= window->width) {
        return false;
    }
    if (window->upscaling == UPSCALE_ZEROS && ((y | x) & 1) != 0) {
        return false;
    }
    at->y = window->upscaling != 0u ? (uint32_t)y / 2u : (uint32_t)y;
    at->x = window->upscaling != 0u ? (uint32_t)x / 2u : (uint32_t)x;
    return true;
}
