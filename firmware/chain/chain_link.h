/* Messages between two neighbours of a chain, so that nothing that happens on their line harms a payload. LINK.md
 * has the protocol. The buffers of payloads are handed over by a flag each: the link owns one while its flag has one
 * value, the program while it has the other.
 */
#ifndef MCUD_CHAIN_LINK_H
#define MCUD_CHAIN_LINK_H

#include <stdbool.h>
#include <stdint.h>

/* A buffer for one payload: full from its last byte's arrival until its reader has done with it. */
typedef struct {
    uint8_t *bytes;
    uint32_t count;
    volatile bool full;
} chain_buffer;

#define CHAIN_MOST_TICKS (UINT32_MAX / 4u) /* of a delay, so that the counter does not wrap within it */

typedef struct {
    uint32_t resends; /* packets sent again */
    uint32_t damaged; /* frames that arrived with a wrong CRC, or cut off */
} chain_counts;

/* Buffers of payloads that come and go, and whether there is a board before that fills the one, and a next board
 * that takes the other. */
typedef struct {
    chain_buffer *in;
    chain_buffer *out;
    bool before;
    bool after;
} chain_ends;

/* Empties both buffers, forgets all that was under way, and ignores packets of other sessions from now on. `session` is
 * not 0; `resend_ticks` is the first delay, CHAIN_MOST_TICKS at most. */
void chain_links_start(const chain_ends *ends, uint32_t session, uint32_t resend_ticks);

/* Whether something was sent that has not been confirmed: it may have to be sent again, so the core does not sleep. */
bool chain_links_wait(void);

/* Has the links looked after, where no interrupt does: lines that have none, and delays. */
void chain_links_poll(void);

/* Ticks that the links have taken from the program: work and interrupts. The number wraps around. */
uint32_t chain_links_ticks(void);

chain_counts chain_links_counts(void);

#endif
