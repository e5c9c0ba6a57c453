/* Minimal example of residual: fill the input, run, read the output. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <stdio.h>

#include "residual.h"

#include "mcud_cores.h"

/* Threads replace the other cores here. mcud_cores.h shows these four functions for a chip. */
typedef struct {
    mcud_core_work *work;
    void *argument;
    uint32_t busy;
} core_call;

static core_call calls[2];

static void *serve(void *argument)
{
    core_call *call = argument;
    call->work(call->argument);
    __atomic_store_n(&call->busy, 0u, __ATOMIC_RELEASE);
    return 0;
}

void mcud_core_start(uint32_t core, mcud_core_work *work, void *argument)
{
    pthread_t thread;
    calls[core].work = work;
    calls[core].argument = argument;
    calls[core].busy = 1;
    if (pthread_create(&thread, 0, serve, &calls[core]) != 0) {
        exit(EXIT_FAILURE);
    }
    pthread_detach(thread);
}

int32_t mcud_core_is_busy(uint32_t core)
{
    return __atomic_load_n(&calls[core].busy, __ATOMIC_ACQUIRE) != 0u;
}

void mcud_core_wake(void)
{
}

void mcud_core_wait(void)
{
    sched_yield();
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
