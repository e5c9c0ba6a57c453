/* Requests for the parameters of a program that has some; WIRE.md has their fields. */
#ifndef MCUD_PARAMETER_REQUESTS_H
#define MCUD_PARAMETER_REQUESTS_H

#include "command.h"

/* True while the values are a mixture of two blobs: no program may run, and nothing may read the values. */
bool parameters_are_mixed(void);

/* Executes PARAMETERS, PULL, PUSH or RESTORE. Returns 0 and sets `*length` of the reply's data, or returns an ERROR_
 * code. */
uint8_t parameter_request(mcud_frame *frame, uint32_t *length);

#endif
