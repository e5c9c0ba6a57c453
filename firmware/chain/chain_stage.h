/* A board's part of a model that a chain of boards computes: payloads come in, the board's operators run, payloads go
 * out. While it computes one, the next arrives and the previous one is sent (LINK.md). */
#ifndef MCUD_CHAIN_STAGE_H
#define MCUD_CHAIN_STAGE_H

#include "chain_link.h"

/* Bytes of a payload that are a part of an arena: where a tensor, or a block of it, is before or after a run. */
typedef struct {
    uint32_t payload; /* first byte in the payload */
    uint32_t offset;  /* in the arena */
    uint32_t count;
    uint32_t arena; /* number in the model's list */
} chain_piece;

/* Bytes that a board passes on as they came. They wait in `held` while it computes. */
typedef struct {
    uint32_t from; /* first byte in the payload that came */
    uint32_t to;   /* first byte in the payload that goes */
    uint32_t count;
} chain_passed;

typedef struct {
    const chain_piece *inputs;
    const chain_piece *outputs;
    const chain_passed *passed;
    uint8_t *held;
    chain_buffer *in;
    chain_buffer *out;
    uint32_t input_count;
    uint32_t output_count;
    uint32_t passed_count;
    bool first; /* of the chain: the host fills `in` */
    bool last;  /* of the chain: the host empties `out` */
} chain_stage;

/* Generated. */
extern const chain_stage mcud_chain;

typedef struct {
    uint32_t session; /* 0 before the first one */
    uint32_t taken;   /* payloads whose run has begun */
    uint32_t done;    /* payloads that are computed */
    uint64_t ticks;   /* of all runs that are done, with the copies of their payloads, without the links */
    uint64_t links;   /* ticks of the links */
    uint32_t last;    /* when the last payload was done */
    bool running;
} chain_state;

/* Forgets all payloads, and restarts with the next one. */
void chain_start(uint32_t session, uint32_t resend_ticks);

/* Computes a payload if one is there. Calls `between` after every step, and while it waits. */
void chain_turn(void (*between)(void));

const chain_state *chain_now(void);

/* Requests of the host; false or NULL if impossible now. At the first board, chain_put() writes bytes of a payload, and
 * its last byte completes it. At the last board, chain_output() points to bytes of the output, and chain_next()
 * releases it. */
bool chain_put(uint32_t offset, const uint8_t *bytes, uint32_t count);
const uint8_t *chain_output(uint32_t offset);
bool chain_next(void);

#endif
