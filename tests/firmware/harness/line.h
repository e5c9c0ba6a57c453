/* A line to nowhere for frame.c: what is sent is kept, and may be received by another frame. */
#ifndef LINE_H
#define LINE_H

#include "frame.h"

enum { SENT_BYTES = 3 * FRAME_WIRE_BYTES };

typedef struct {
    uint8_t bytes[SENT_BYTES];
    uint32_t count;
} line_sent;

extern line_sent line;

/* Receives what was sent from byte `from` on, up to the end of a frame. Returns the byte after it, or 0 if no
 * intact frame ended. */
uint32_t line_receive(mcud_frame *frame, uint32_t from);

#endif
