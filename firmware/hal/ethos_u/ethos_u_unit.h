/* Internals of the functional model of a unit: its registers, and functions that its operations share. */
#ifndef MCUD_ETHOS_U_UNIT_H
#define MCUD_ETHOS_U_UNIT_H

#include <stdbool.h>
#include <stddef.h>

#include "mcud_npu.h"
#include "ethos_u_registers.h"
#include "ethos_u_weights.h"

#ifndef MCUD_NPU_MACS
#define MCUD_NPU_MACS 128
#endif
#if MCUD_NPU_MACS != 32 && MCUD_NPU_MACS != 64 && MCUD_NPU_MACS != 128 && MCUD_NPU_MACS != 256
#error "MCUD_NPU_MACS is 32, 64, 128 or 256"
#endif
#ifndef MCUD_NPU_ACCUMULATORS
#define MCUD_NPU_ACCUMULATORS 1024
#endif
#if MCUD_NPU_ACCUMULATORS < 128
#error "a pixel has up to 128 accumulators"
#endif
#ifndef MCUD_NPU_STEPS
#define MCUD_NPU_STEPS (UINT64_C(1) << 40) /* a limit of the loads, after which the model gives up */
#endif

enum {
    MCUD_NPU_CHANNELS = 8,      /* channels of inputs that a unit multiplies at once */
    MCUD_NPU_TABLE_BYTES = 2048 /* the tables are at the end of the unit's own memory */
};

typedef struct {
    const mcud_npu_regions *regions;
    uint16_t small[MCUD_NPU_SMALL_REGISTERS];
    uint64_t large[MCUD_NPU_LARGE_REGISTERS];
    uint8_t tables[MCUD_NPU_TABLE_BYTES];
    uint64_t steps;
} mcud_npu_unit;

static inline uint32_t mcud_npu_small(const mcud_npu_unit *unit, uint32_t command)
{
    return unit->small[command - MCUD_NPU_FIRST_SMALL];
}

static inline uint64_t mcud_npu_large(const mcud_npu_unit *unit, uint32_t command)
{
    return unit->large[command];
}

/* A scale has 32 bits; its shift is in the upper word of the register. */
static inline uint32_t mcud_npu_scale(const mcud_npu_unit *unit, uint32_t command)
{
    return (uint32_t)unit->large[command];
}

static inline uint32_t mcud_npu_shift(const mcud_npu_unit *unit, uint32_t command)
{
    return (uint32_t)(unit->large[command] >> 32) & 63u;
}

/* `size` bytes at an address of a region, or NULL if the region does not contain them all. */
const uint8_t *mcud_npu_read(const mcud_npu_unit *unit, uint32_t region, uint64_t address, uint64_t size);
uint8_t *mcud_npu_write(const mcud_npu_unit *unit, uint32_t region, uint64_t address, uint64_t size);

/* A feature map in up to four tiles, as the registers state it. */
typedef struct {
    uint64_t base[4];
    uint64_t stride_x;
    uint64_t stride_y;
    uint64_t stride_c;
    uint32_t height_left; /* rows of the upper tiles, at the left and at the right */
    uint32_t height_right;
    uint32_t width_left;
    uint32_t region;
    uint32_t element_bytes;
    int32_t zero_point;
    bool is_signed;
    bool bricks; /* NHCWB16: bricks of 16 channels */
} mcud_npu_map;

enum { MCUD_NPU_IFM, MCUD_NPU_IFM2, MCUD_NPU_OFM };
int32_t mcud_npu_map_of(const mcud_npu_unit *unit, uint32_t which, mcud_npu_map *map);

typedef struct {
    uint32_t y;
    uint32_t x;
    uint32_t c;
} mcud_npu_place;

uint64_t mcud_npu_address(const mcud_npu_map *map, mcud_npu_place at);

/* Loads `count` channels, all in one brick, and subtracts the zero point. */
int32_t mcud_npu_load(mcud_npu_unit *unit, const mcud_npu_map *map, mcud_npu_place at, uint32_t count, int64_t *values);

typedef struct {
    uint32_t height;
    uint32_t width;
    uint32_t depth;
} mcud_npu_shape;

/* The shape of the output; MCUD_NPU_OUTSIDE where its region cannot hold its elements. */
int32_t mcud_npu_output_shape(const mcud_npu_unit *unit, const mcud_npu_map *ofm, mcud_npu_shape *shape);

/* A kernel that slides over a padded input, which has been upscaled by 2 or not. */
typedef struct {
    int32_t kernel_height; /* in elements, without the dilation between them */
    int32_t kernel_width;
    int32_t dilation_y;
    int32_t dilation_x;
    int32_t stride_y;
    int32_t stride_x;
    int32_t pad_top;
    int32_t pad_left;
    int64_t height; /* of the input without its padding, as far as the outputs need it */
    int64_t width;
    uint32_t upscaling;
    bool part_kernel_first;
} mcud_npu_window;

int32_t mcud_npu_window_of(const mcud_npu_unit *unit, mcud_npu_shape output, mcud_npu_window *window);

/* The row and column of the input under an element of the kernel; false in the padding, and between inserted zeros. */
bool mcud_npu_under(const mcud_npu_window *window, mcud_npu_place output, int32_t ky, int32_t kx, mcud_npu_place *at);

enum { MCUD_NPU_TWICE = 0, MCUD_NPU_TRUNCATE = 1, MCUD_NPU_NATURAL = 2, MCUD_NPU_AWAY = 3 };

/* value * scale / 2^shift, rounded; shift is at most 95. A result beyond 62 bits is replaced by 2^62 or -2^62. */
int64_t mcud_npu_scaled(int64_t value, uint32_t scale, uint32_t shift, uint32_t rounding);

/* The rounding of results: MCUD_NPU_TWICE, _TRUNCATE, _NATURAL or _AWAY. */
uint32_t mcud_npu_rounding(const mcud_npu_unit *unit);

/* 2^15 / (1 + exp(-value / (24 * 2^9))), and 2^15 * tanh(value / (48 * 2^8)). */
int64_t mcud_npu_logistic(int64_t value);
int64_t mcud_npu_tanh(int64_t value);

/* Adds the zero point, clips, looks up and writes a result. */
int32_t mcud_npu_store(mcud_npu_unit *unit, const mcud_npu_map *ofm, mcud_npu_place at, int64_t value);

int32_t mcud_npu_convolve(mcud_npu_unit *unit, bool depthwise);
int32_t mcud_npu_pool(mcud_npu_unit *unit, uint32_t mode);
int32_t mcud_npu_elementwise(mcud_npu_unit *unit, uint32_t mode);

#endif
