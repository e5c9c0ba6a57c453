/* Messages between two neighbours of a chain, by a protocol that repairs lost and damaged packets (LINK.md). Each
 * buffer of a payload is handed over by its flag `full`: the link owns the buffer at one value of the flag, the program
 * at the other.
 */
#ifndef MCUD_CHAIN_LINK_H
#define MCUD_CHAIN_LINK_H

#include <stdbool.h>
#include <stdint.h>

/* A buffer for one payload: full from the arrival of its last byte until its reader has finished. */
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

/* The buffers of payloads that come (`in`) and go (`out`); `before`: a previous board fills `in`; `after`: a next board
 * takes `out`. */
typedef struct {
    chain_buffer *in;
    chain_buffer *out;
    bool before;
    bool after;
} chain_ends;

/* Empties both buffers, drops all packets under way, and from now on ignores packets of other sessions. `session` is
 * not 0; `resend_ticks` is the first delay, CHAIN_MOST_TICKS at most. */
void chain_links_start(const chain_ends *ends, uint32_t session, uint32_t resend_ticks);

/* Whether a sent packet awaits its confirmation: it may have to be sent again, so the core does not sleep. */
bool chain_links_wait(void);

/* Serves the links where no interrupt does: on lines without interrupts, and after delays. */
void chain_links_poll(void);

/* Ticks that the links have taken from the program, by work and interrupts; wraps at 2^32. */
uint32_t chain_links_ticks(void);

chain_counts chain_links_counts(void);

#endif
