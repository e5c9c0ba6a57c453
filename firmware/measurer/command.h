/* Requests and their replies; WIRE.md has the fields. */
#ifndef MCUD_COMMAND_H
#define MCUD_COMMAND_H

#include "frame.h"

enum {
    REQUEST_HELLO = 1,
    REQUEST_WRITE,
    REQUEST_READ,
    REQUEST_RUN,
    REQUEST_TIME,
    REQUEST_STACK,
    REQUEST_CALL,
    REQUEST_KERNELS,
    REQUEST_GUARD,
    REQUEST_START, /* this one and the following: boards of a chain only */
    REQUEST_PUT,
    REQUEST_TAKE,
    REQUEST_NEXT,
    REQUEST_STATE,
    REQUEST_RESET,      /* this one: any board */
    REQUEST_PARAMETERS, /* this one and the following: programs with parameters only */
    REQUEST_PULL,
    REQUEST_PUSH,
    REQUEST_RESTORE,
    REPLY = 0x80, /* added to the type of the request */
    REPLY_BUSY = 0xFE,
    REPLY_ERROR = 0xFF
};

enum {
    ERROR_UNSYNCHRONISED = 1, /* no HELLO since the board started */
    ERROR_SEQUENCE,           /* neither a repeat of the last request nor the next one */
    ERROR_TYPE,               /* no such request */
    ERROR_LENGTH,             /* the data have another length than this request needs */
    ERROR_RANGE,              /* outside the arena, the schedule or the operator's rows */
    ERROR_KERNEL,             /* the operator's kernel is not linked in */
    ERROR_UNSUPPORTED,        /* this build cannot do that */
    ERROR_NOT_NOW,            /* the board computes, or lacks the payload or some parameters */
    ERROR_FOREIGN,            /* the parameters are those of another model */
    ERROR_CORRUPT             /* the CRC of the parameters is wrong: the initial ones are set */
};

enum { KEPT_BYTES = 1 + 4 * MCUD_TIME_STEPS };

/* The state of the conversation with the host; zero at the start. */
typedef struct {
    mcud_frame frame;
    uint8_t kept[KEPT_BYTES]; /* data of the last reply, if `keeps` */
    uint8_t kept_type;
    uint8_t seq; /* of the last request that was executed */
    bool synchronised;
    bool keeps;
    uint32_t kept_length;
    uint32_t crc; /* of the last request that was executed; an equal one is a repeat */
    uint32_t stack_bytes;
} mcud_link;

/* Executes the request in `link->frame`, or recognises it as a repeat, and sends the reply. */
void command_answer(mcud_link *link);

#endif
