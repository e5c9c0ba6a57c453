/* Minimal example of residual: fill the input, run, read the output. */
#include <stdio.h>

#include "residual.h"

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
