/* Minimal example of recurrent: fill the input, run, read the output. */
#include <stdio.h>
#include <string.h>

#include "recurrent.h"

/* Your camera or microphone: rows [first_row, first_row + rows) of an input, channels last. */
static void feed(void *user, uint32_t input, int32_t first_row, int32_t rows, void *to)
{
    static const size_t row_bytes[] = {24};
    (void)user;
    (void)first_row;
    memset(to, 0, (size_t)rows * row_bytes[input]);
}

int main(void)
{
    recurrent_set_feed(feed, 0);
    recurrent_run();
    const float *output = recurrent_output();
    for (uint32_t i = 0; i < RECURRENT_OUTPUT_COUNT; i++) {
        printf("output[%lu] = %g\n", (unsigned long)i, (double)output[i]);
    }
    return 0;
}
