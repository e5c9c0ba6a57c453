/* The host's requests to a board of a chain; LINK.md has the fields. */
#ifndef MCUD_CHAIN_REQUESTS_H
#define MCUD_CHAIN_REQUESTS_H

#include "command.h"

/* Executes the request in `frame` and replaces its data by `*length` bytes of the reply. Sets `*keep` if the request
 * must not be executed again. Returns 0, or an ERROR_ code. */
uint8_t chain_request(mcud_frame *frame, uint32_t *length, bool *keep);

/* Whether a request would disturb the payload that is being computed. */
bool chain_refuses(uint8_t type);

#endif
