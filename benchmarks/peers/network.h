/* One network of any tool, as program.c runs it. The league writes its functions for each tool. */
#ifndef NETWORK_H
#define NETWORK_H

#include <stdint.h>

typedef struct {
    uint8_t *bytes;
    uint32_t count;
} network_buffer;

extern const uint32_t network_inputs;
extern const uint32_t network_outputs;

/* The memory of an input or output. That of an output is valid after a run. */
network_buffer network_input(uint32_t index);
network_buffer network_output(uint32_t index);

void network_run(void);

#endif
