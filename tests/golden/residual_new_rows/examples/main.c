/* Minimal example of residual: push new rows, read the output. */
#include <stdio.h>

#include "residual.h"

int main(void)
{
    static int8_t rows[RESIDUAL_INPUT_COUNT]; /* your data: 2 new rows, channels last */
    while (residual_push(rows) != 0u) {
        /* the window is not full yet */
    }
    const int8_t *output = residual_output();
    for (uint32_t i = 0; i < RESIDUAL_OUTPUT_COUNT; i++) {
        printf("output[%lu] = %g\n", (unsigned long)i, (double)residual_dequantize_output(output[i]));
    }
    return 0;
}
