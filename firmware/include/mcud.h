/* The tape: operator records, row-offset tables and a schedule, all constant, run by a small loop.
 *
 * A tensor is (rows, cols, channels), channels last. Its rows lie in blocks of `block_rows`, each block
 * at its own offset in an arena. The first block may lack rows at its start, so that all blocks end where
 * the windows of their reader end. A kernel computes rows [first_row, end_row) of its operator's output
 * and finds every row it reads or writes with mcud_row(). The result has the same bits for any cut.
 */
#ifndef MCUD_H
#define MCUD_H

#include <stdint.h>

#include "mcud_compiler.h"
#include "mcud_config.h" /* generated: mcud_offset, mcud_code, MCUD_ALIGN */

/* Arenas in a board's further memories are in separate sections, which the linker script places; they need not
 * be cleared at start. Define the macro yourself where your linker has another way to say so. */
#ifndef MCUD_MEMORY
#define MCUD_MEMORY(name) __attribute__((section(".arena." #name)))
#endif

/* For an arena whose base needs a larger alignment than its type has. */
#ifndef MCUD_ALIGNED
#define MCUD_ALIGNED(bytes) __attribute__((aligned(bytes)))
#endif

/* Does not compile where `what` is false. */
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define MCUD_REQUIRE(what, text) _Static_assert(what, text)
#elif defined(__GNUC__) && !defined(__cplusplus)
#define MCUD_REQUIRE(what, text) __extension__ _Static_assert(what, text)
#else
#define MCUD_REQUIRE(what, text) extern const char mcud_required[(what) ? 1 : -1]
#endif

/* block_rows of a tensor that is one block, or of scratch that is at one place in every step */
#define MCUD_WHOLE UINT32_MAX

typedef struct {
    uint8_t *memory;            /* the arena the tensor lies in */
    const mcud_offset *offsets; /* of each block, in units of MCUD_ALIGN bytes */
    uint32_t row_bytes;         /* 0 for scratch: every row of a block has the block's address */
    uint32_t block_rows;        /* rows in a block; the last one may be shorter */
    uint32_t lead;              /* rows that the first block lacks at its start; its memory has room for them */
} mcud_tensor;

/* The measurer receives such records over the line: only their end may have padding. */
MCUD_REQUIRE(sizeof(mcud_tensor) == 3u * sizeof(void *) + 8u,
             "mcud_tensor has another layout: compile these files with -fno-pack-struct");

typedef struct mcud_op mcud_op;

/* Computes rows [first_row, end_row) of op's output; 0 <= first_row < end_row <= op->rows.
 * A call never crosses a block of the output. Kernels named _by_rows take in these rows of their input
 * instead, in order, and make the output with the last ones. */
typedef void mcud_kernel(const mcud_op *op, int32_t first_row, int32_t end_row);

struct mcud_op {
    mcud_kernel *kernel;
    const void *params;           /* the kernel's mcud_<kernel>_params */
    const mcud_tensor *const *in; /* what it reads, in the order the kernel documents */
    const mcud_tensor *out;       /* NULL for a wait */
    const mcud_tensor *scratch;   /* NULL if the kernel needs none */
    uint32_t rows;                /* of the output; by rows, of the input */
    uint32_t block_rows;          /* rows made, or taken in, by one step */
};
MCUD_REQUIRE(sizeof(mcud_op) == 5u * sizeof(void *) + 8u,
             "mcud_op has another layout: compile these files with -fno-pack-struct");

/* A call that another kernel makes. */
typedef struct {
    mcud_kernel *kernel;
    const void *params;
} mcud_stage_call;

typedef struct {
    uint8_t *base;
    uint32_t bytes;
} mcud_arena;

struct mcud_cores;

typedef struct {
    const mcud_op *ops;
    const mcud_code *schedule; /* of each step: operator << block_bits | block */
    const mcud_arena *arenas;
    const struct mcud_cores *cores; /* NULL if one core runs it; else see mcud_cores.h */
    uint32_t steps;
    uint32_t block_bits;
    uint32_t arena_count;
} mcud_model;

/* Address of the first byte of a row. Rows of one block are contiguous. */
static inline void *mcud_row(const mcud_tensor *tensor, int32_t row)
{
    const uint32_t place = (uint32_t)row + tensor->lead;
    const uint32_t block = place / tensor->block_rows;
    const uint32_t row_in_block = place - block * tensor->block_rows;
    return tensor->memory + tensor->offsets[block] * (uint32_t)MCUD_ALIGN + row_in_block * tensor->row_bytes;
}

/* Address of the first row; a lead is less than a block. */
static inline void *mcud_first_row(const mcud_tensor *tensor)
{
    return tensor->memory + tensor->offsets[0] * (uint32_t)MCUD_ALIGN + tensor->lead * tensor->row_bytes;
}

/* The row after the longest run from `row` on, at most to `end`, whose rows are contiguous; row < end. */
static inline int32_t mcud_run_end(const mcud_tensor *tensor, int32_t row, int32_t end)
{
    const uint32_t left = tensor->block_rows - ((uint32_t)row + tensor->lead) % tensor->block_rows;
    return (uint32_t)(end - row) <= left ? end : row + (int32_t)left;
}

/* Runs one step of the schedule; 0 <= step < model->steps. */
void mcud_step(const mcud_model *model, uint32_t step);

/* Runs all steps in order, on one core. */
void mcud_run(const mcud_model *model);

/* Whether a short schedule of whole operators runs by calls of them. mcud_run() alone checks the owner of an arena. */
#ifdef MCUD_CHECK_OWNER
#define MCUD_CALLS 0
#else
#define MCUD_CALLS 1
#endif

/* Runs all rows of an operator. */
void mcud_run_whole(const mcud_op *op);

#endif
