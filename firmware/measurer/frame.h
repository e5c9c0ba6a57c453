/* Frames of the wire protocol: COBS(type, seq, length, data, CRC-32) and a zero byte. See WIRE.md. */
#ifndef MCUD_FRAME_H
#define MCUD_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "mcud_measurer.h"

#ifndef MCUD_CHAIN
#define MCUD_CHAIN 0 /* 1: this board is one of a chain */
#endif

enum {
    FRAME_HEADER_BYTES = 4,
    FRAME_CRC_BYTES = 4,
    FRAME_RAW_BYTES = FRAME_HEADER_BYTES + MCUD_DATA_BYTES + FRAME_CRC_BYTES,
    FRAME_WIRE_BYTES = FRAME_RAW_BYTES + FRAME_RAW_BYTES / 254 + 1
};

/* The one buffer: a request as it arrives, the decoded request, then the reply to it. */
typedef struct {
    uint8_t bytes[FRAME_WIRE_BYTES];
    uint32_t count;  /* bytes received since the last zero; a frame with more than `bytes` holds is dropped */
    uint32_t length; /* of the data of the decoded request or of the reply */
    uint32_t crc;    /* of the decoded request */
} mcud_frame;

static inline uint8_t *frame_data(mcud_frame *frame)
{
    return frame->bytes + FRAME_HEADER_BYTES;
}

/* Takes one byte from the line. True when it completes an intact frame, which is then decoded in place; damaged frames
 * are dropped. */
bool frame_receive(mcud_frame *frame, uint8_t byte);

/* Takes bytes before the first zero and returns their number; the zero itself is for frame_receive(). */
uint32_t frame_append(mcud_frame *frame, const uint8_t *bytes, uint32_t count);

/* Writes type, length and CRC of a frame whose sequence number and `length` bytes of data are in place. Returns the
 * number of bytes of the frame before its encoding. */
uint32_t frame_complete(uint8_t *bytes, uint8_t type, uint32_t length);

/* Sends the frame with this type, its own sequence number and `length` bytes of data. */
void frame_send(mcud_frame *frame, uint8_t type, uint32_t length);

/* Little-endian fields at any address. */
uint32_t get_u16(const uint8_t *from);
uint32_t get_u32(const uint8_t *from);
void put_u32(uint8_t *to, uint32_t value);
void put_u64(uint8_t *to, uint64_t value);

#endif
