/* The frame parser and its CRC: what is sent is received as it was, whatever came before it; a damaged byte is
 * noticed; no bytes from the line take the parser out of its buffer. */
#include <string.h>

#include "harness.h"
#include "line.h"

/* Noise before a frame, and the longest data: as much as a bounded proof can take. */
enum { NOISE_BYTES = FRAME_WIRE_BYTES + 8, DATA_BYTES = MCUD_DATA_BYTES };

static void receive_noise(mcud_frame *frame)
{
    const uint32_t count = draw(NOISE_BYTES + 1);
    for (uint32_t i = 0; i < count; i++) {
        const bool whole = frame_receive(frame, (uint8_t)draw(256));
        require(frame->count <= FRAME_WIRE_BYTES + 1);
        require(!whole || frame->length <= MCUD_DATA_BYTES);
    }
}

static void send_drawn(mcud_frame *frame)
{
    const uint32_t length = draw(DATA_BYTES + 1);
    frame->bytes[1] = (uint8_t)draw(256);
    for (uint32_t i = 0; i < length; i++) {
        frame_data(frame)[i] = (uint8_t)draw(256);
    }
    line.count = 0;
    frame_send(frame, (uint8_t)draw(256), length);
    require(line.count <= FRAME_WIRE_BYTES + 1);
    for (uint32_t i = 0; i < line.count; i++) {
        require((line.bytes[i] == 0) == (i == line.count - 1));
    }
}

void harness(void)
{
    static mcud_frame sent;
    static mcud_frame received;
    memset(&sent, 0, sizeof sent);
    memset(&received, 0, sizeof received);
    receive_noise(&received);
    frame_receive(&received, 0);
    send_drawn(&sent);
    const uint32_t wire = line.count;
    require(line_receive(&received, 0) == wire);
    require(received.length == sent.length);
    require(memcmp(received.bytes, sent.bytes, FRAME_HEADER_BYTES + sent.length) == 0);
#ifndef CBMC /* a CRC of 32 bits misses what CBMC would find: two damaged bytes that make up for each other */
    line.bytes[draw(wire)] ^= (uint8_t)(1 + draw(255));
    require(line_receive(&received, 0) == 0);
#endif
}
