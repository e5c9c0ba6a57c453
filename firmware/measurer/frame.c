#include "frame.h"

#include "mcud_hal.h"

uint32_t get_u16(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8;
}

uint32_t get_u32(const uint8_t *from)
{
    return get_u16(from) | get_u16(from + 2) << 16;
}

void put_u32(uint8_t *to, uint32_t value)
{
    for (uint32_t i = 0; i < 4; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
}

void put_u64(uint8_t *to, uint64_t value)
{
    put_u32(to, (uint32_t)value);
    put_u32(to + 4, (uint32_t)(value >> 32));
}

/* CRC-32 of IEEE 802.3, four bits at a time: a table of 64 bytes. */
static uint32_t crc32(const uint8_t *bytes, uint32_t count)
{
    static const uint32_t table[16] = {
        0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
        0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
    };
    uint32_t crc = 0xFFFFFFFFu;
    for (uint32_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        crc = table[crc & 15u] ^ crc >> 4;
        crc = table[crc & 15u] ^ crc >> 4;
    }
    return ~crc;
}

/* COBS in place. Returns the number of decoded bytes, 0 for what is not an encoding. */
static uint32_t cobs_decode(uint8_t *bytes, uint32_t count)
{
    uint32_t from = 0;
    uint32_t to = 0;
    while (from < count) {
        const uint32_t code = bytes[from++];
        if (code - 1 > count - from) {
            return 0;
        }
        for (uint32_t i = 1; i < code; i++) {
            bytes[to++] = bytes[from++];
        }
        if (code != 0xFF && from < count) {
            bytes[to++] = 0;
        }
    }
    return to;
}

static void cobs_send(const uint8_t *bytes, uint32_t count)
{
    const uint8_t zero = 0;
    uint32_t run = 0;
    for (uint32_t i = 0; i <= count; i++) {
        const bool ends = i == count || bytes[i] == 0;
        if (!ends) {
            run++;
        }
        if (ends || run == 254) {
            const uint8_t code = (uint8_t)(run + 1);
            hal_uart_write(&code, 1);
            hal_uart_write(bytes + (ends ? i : i + 1) - run, run);
            run = 0;
        }
    }
    hal_uart_write(&zero, 1);
}

bool frame_receive(mcud_frame *frame, uint8_t byte)
{
    if (byte != 0) {
        if (frame->count < FRAME_WIRE_BYTES) {
            frame->bytes[frame->count] = byte;
        }
        if (frame->count <= FRAME_WIRE_BYTES) {
            frame->count++;
        }
        return false;
    }
    const uint32_t received = frame->count;
    frame->count = 0;
    if (received > FRAME_WIRE_BYTES) {
        return false;
    }
    const uint32_t raw = cobs_decode(frame->bytes, received);
    if (raw < FRAME_HEADER_BYTES + FRAME_CRC_BYTES) {
        return false;
    }
    frame->length = get_u16(frame->bytes + 2);
    if (frame->length > MCUD_DATA_BYTES || raw != FRAME_HEADER_BYTES + frame->length + FRAME_CRC_BYTES) {
        return false;
    }
    frame->crc = crc32(frame->bytes, raw - FRAME_CRC_BYTES);
    return frame->crc == get_u32(frame->bytes + raw - FRAME_CRC_BYTES);
}

uint32_t frame_complete(uint8_t *bytes, uint8_t type, uint32_t length)
{
    const uint32_t checked = FRAME_HEADER_BYTES + length;
    bytes[0] = type;
    bytes[2] = (uint8_t)length;
    bytes[3] = (uint8_t)(length >> 8);
    put_u32(bytes + checked, crc32(bytes, checked));
    return checked + FRAME_CRC_BYTES;
}

void frame_send(mcud_frame *frame, uint8_t type, uint32_t length)
{
    frame->length = length;
    cobs_send(frame->bytes, frame_complete(frame->bytes, type, length));
}
