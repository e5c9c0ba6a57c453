/* Minimal example of residual: fill the input, run, read the output. */
#include <stdio.h>

#include "residual.h"
#include "mcud_unit.h"

/* This example has one core, which also runs the operators of other units. mcud_unit.h describes the real function. */
void mcud_unit_run(uint32_t unit, const mcud_op *op, int32_t first_row, int32_t end_row)
{
    (void)unit;
    op->kernel(op, first_row, end_row);
}

int main(void)
{
    int8_t *input = residual_input();
    for (uint32_t i = 0; i < RESIDUAL_INPUT_COUNT; i++) {
        input[i] = 0; /* your data, channels last */
    }
    residual_run();
    const int8_t *output = residual_output();
    for (uint32_t i = 0; i < RESIDUAL_OUTPUT_COUNT; i++) {
        printf("output[%lu] = %g\n", (unsigned long)i, (double)residual_dequantize_output(output[i]));
    }
    return 0;
}
