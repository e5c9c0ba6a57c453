/* Generated definitions of every measurer firmware, and the sizes of its protocol (WIRE.md). */
#ifndef MCUD_MEASURER_H
#define MCUD_MEASURER_H

#include "mcud.h"

/* Generated: the program that RUN and TIME execute, and its arenas. A bench firmware has 0 steps. */
extern const mcud_model *const mcud_deployed;

/* Generated: sets the states of the program to their initial values. */
void mcud_deployed_reset(void);

#ifndef MCUD_PARAMETERS
#define MCUD_PARAMETERS 0 /* 1: the program has parameters that can be replaced */
#endif

#if MCUD_PARAMETERS
#include "mcud_parameter_table.h"

/* Generated: the parameters of the program. */
extern const mcud_parameter_table *const mcud_deployed_parameters;
#endif

/* Generated: every kernel linked in, ordered by name. CALL refuses any other function. */
extern mcud_kernel *const mcud_kernels[];
extern const uint32_t mcud_kernel_count;

/* Identity of the build, from the compiler's command line. */
#ifndef MCUD_FIRMWARE_HASH
#define MCUD_FIRMWARE_HASH 0
#endif
#ifndef MCUD_BOARD_NAME
#define MCUD_BOARD_NAME "unknown"
#endif

/* Data bytes of the largest frame, in either direction. 246 makes a frame of 256 bytes on the wire. */
#ifndef MCUD_DATA_BYTES
#define MCUD_DATA_BYTES 246
#endif

enum {
    MCUD_WIRE_VERSION = 1,
    MCUD_TIME_STEPS = 15 /* most steps of one TIME; its reply must be one that is kept */
};

#endif
