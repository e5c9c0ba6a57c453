/* Common parts of kernels that build command streams for an Ethos-U and run them. */
#ifndef MCUD_NPU_STREAM_H
#define MCUD_NPU_STREAM_H

#include <string.h>

#include "mcud.h"
#include "mcud_npu.h"

enum { MCUD_NPU_MOST_COMMANDS = 112, MCUD_NPU_OWN_COMMANDS = 19 };

#define MCUD_NPU_STOP 0xFFFF0000u

/* The regions of a stream: constants in flash, the first input, the output, the second input. */
enum { MCUD_NPU_CONSTANTS = 0, MCUD_NPU_SOURCE = 1, MCUD_NPU_OUTPUT = 2, MCUD_NPU_SECOND = 4 };

/* Commands that set registers; those of addresses have a second word. */
enum {
    MCUD_NPU_IFM_PAD_TOP = 0x100,
    MCUD_NPU_IFM_PAD_BOTTOM = 0x103,
    MCUD_NPU_IFM_HEIGHT0_M1 = 0x10B,
    MCUD_NPU_OFM_HEIGHT_M1 = 0x112,
    MCUD_NPU_OFM_BLK_HEIGHT_M1 = 0x116,
    MCUD_NPU_OFM_HEIGHT0_M1 = 0x11B,
    MCUD_NPU_IFM2_HEIGHT0_M1 = 0x18B,
    MCUD_NPU_IFM_BASE0 = 0x4000,
    MCUD_NPU_IFM_BASE2 = 0x4002,
    MCUD_NPU_IFM_STRIDE_Y = 0x4005,
    MCUD_NPU_OFM_BASE0 = 0x4010,
    MCUD_NPU_IFM2_BASE0 = 0x4080,
};

/* The default, weak in each kernel; an application may replace it. */
__attribute__((weak)) void mcud_npu_failed(int32_t code)
{
    (void)code;
    __builtin_trap();
}

typedef struct {
    uint32_t words[MCUD_NPU_MOST_COMMANDS + MCUD_NPU_OWN_COMMANDS] MCUD_ALIGNED(MCUD_NPU_ALIGNMENT);
    uint32_t count;
} mcud_npu_stream;

/* Begins a stream with the commands that are the same for all rows. */
static inline void mcud_npu_begin(mcud_npu_stream *stream, const uint32_t *commands, int32_t count)
{
    memcpy(stream->words, commands, (uint32_t)count * sizeof *commands);
    stream->count = (uint32_t)count;
}

static inline void mcud_npu_set(mcud_npu_stream *stream, uint32_t command, int32_t value)
{
    stream->words[stream->count++] = command | (uint32_t)value << 16;
}

static inline void mcud_npu_set_address(mcud_npu_stream *stream, uint32_t command, const uint8_t *at,
                                        const uint8_t *base)
{
    stream->words[stream->count++] = command;
    stream->words[stream->count++] = (uint32_t)(at - base);
}

/* Sets a distance of 40 bits, which may be negative. */
static inline void mcud_npu_set_distance(mcud_npu_stream *stream, uint32_t command, int32_t distance)
{
    stream->words[stream->count++] = command | (distance < 0 ? 0xFF0000u : 0u);
    stream->words[stream->count++] = (uint32_t)distance;
}

/* Sets a region that contains the bytes [begin, end) of a tensor; its base is aligned. */
static inline void mcud_npu_set_region(mcud_npu_regions *regions, int32_t number, const uint8_t *begin,
                                       const uint8_t *end)
{
    regions->base[number] = begin - (uintptr_t)begin % MCUD_NPU_ALIGNMENT;
    regions->size_bytes[number] = (uint32_t)(end - regions->base[number]);
}

/* Runs a stream; a failure calls mcud_npu_failed(). */
static inline void mcud_npu_start(const uint32_t *words, uint32_t count, const mcud_npu_regions *regions)
{
    const int32_t fault = mcud_npu_run(words, count, regions);
    if (fault != MCUD_NPU_DONE) {
        mcud_npu_failed(fault);
    }
}

/* Ends a stream with its operation, and runs it. */
static inline void mcud_npu_finish(mcud_npu_stream *stream, int32_t operation, const mcud_npu_regions *regions)
{
    stream->words[stream->count++] = (uint32_t)operation;
    stream->words[stream->count++] = MCUD_NPU_STOP;
    mcud_npu_start(stream->words, stream->count, regions);
}

/* The row after the longest contiguous run of rows from `row` on, also over several blocks. */
static inline int32_t mcud_npu_run_end(const mcud_tensor *tensor, int32_t row, int32_t end)
{
    int32_t after = mcud_run_end(tensor, row, end);
    uint8_t *const begin = mcud_row(tensor, row);
    while (after < end && mcud_row(tensor, after) == begin + (uint32_t)(after - row) * tensor->row_bytes) {
        after = mcud_run_end(tensor, after, end);
    }
    return after;
}

static inline void mcud_npu_by_core(const mcud_op *op, const mcud_stage_call *call, int32_t first_row, int32_t end_row)
{
    mcud_op core = *op;
    core.kernel = call->kernel;
    core.params = call->params;
    core.kernel(&core, first_row, end_row);
}

#endif
