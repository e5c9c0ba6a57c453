/* The walk over row offsets: every row lies where its block does, runs of rows are as long as they can be and no
 * longer, and the steps of an operator make each of its rows once. */
#include "harness.h"
#include "mcud.h"

enum { MOST_ROWS = 12, MOST_ROW_BYTES = 8, ARENA_BYTES = 4 * MOST_ROWS * MOST_ROW_BYTES };

static mcud_kernel make_rows;
static uint8_t arena[ARENA_BYTES];
static uint8_t made[MOST_ROWS];

static void make_rows(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    require(first_row >= 0 && first_row < end_row && (uint32_t)end_row <= op->rows);
    const uint32_t lead = op->out->lead;
    require(((uint32_t)first_row + lead) / op->block_rows == ((uint32_t)end_row + lead - 1) / op->block_rows);
    for (int32_t row = first_row; row < end_row; row++) {
        made[row]++;
    }
}

static void walk(const mcud_tensor *tensor, uint32_t rows)
{
    const int32_t row = (int32_t)draw(rows);
    const int32_t end = row + 1 + (int32_t)draw(rows - (uint32_t)row);
    const int32_t run_end = mcud_run_end(tensor, row, end);
    const uint8_t *const first = mcud_row(tensor, row);
    const uint32_t block = ((uint32_t)row + tensor->lead) / tensor->block_rows;
    const uint32_t inside = ((uint32_t)row + tensor->lead) % tensor->block_rows;
    require(run_end > row && run_end <= end);
    require(run_end == end || ((uint32_t)run_end + tensor->lead) % tensor->block_rows == 0);
    require(first == arena + tensor->offsets[block] * (uint32_t)MCUD_ALIGN + inside * tensor->row_bytes);
    for (int32_t at = row; at < run_end; at++) {
        const uint8_t *const address = mcud_row(tensor, at);
        require(address == first + (uint32_t)(at - row) * tensor->row_bytes);
        require(address >= arena && address + tensor->row_bytes <= arena + ARENA_BYTES);
    }
}

void harness(void)
{
    mcud_offset offsets[MOST_ROWS];
    mcud_code schedule[MOST_ROWS];
    const uint32_t rows = 1 + draw(MOST_ROWS);
    const uint32_t block_rows = 1 + draw(rows);
    const uint32_t lead = draw(block_rows);
    const uint32_t blocks = (rows + lead + block_rows - 1) / block_rows;
    const uint32_t row_bytes = draw(MOST_ROW_BYTES + 1);
    const uint32_t room = (ARENA_BYTES - block_rows * row_bytes) / MCUD_ALIGN;
    const uint32_t block_bits = 4 + draw(3);
    for (uint32_t i = 0; i < blocks; i++) {
        offsets[i] = (mcud_offset)draw(room + 1);
        schedule[i] = (mcud_code)i;
    }
    const mcud_tensor tensor = {arena, offsets, row_bytes, block_rows, lead};
    walk(&tensor, rows);

    const mcud_op op = {make_rows, 0, 0, &tensor, 0, rows, block_rows};
    const mcud_arena arenas[] = {{arena, ARENA_BYTES}};
    const mcud_model model = {&op, schedule, arenas, 0, blocks, block_bits, 1};
    for (uint32_t i = 0; i < MOST_ROWS; i++) {
        made[i] = 0;
    }
    mcud_run(&model);
    for (uint32_t i = 0; i < rows; i++) {
        require(made[i] == 1);
    }
}
