#include "chain_link.h"

#include <stddef.h>
#include <string.h>

#include "frame.h"
#include "mcud_hal.h"
#include "mcud_ports.h"

enum {
    PACKET_DATA = 0x20,
    PACKET_ACK = 0x21,
    SESSION_BYTES = 4,
    PACKET_BYTES = 236, /* of a payload in one packet: so that a frame has at most 250 bytes on the line */
    SENT_BYTES = 1 + FRAME_HEADER_BYTES + SESSION_BYTES + PACKET_BYTES + FRAME_CRC_BYTES + 1,
    WINDOW = 4,         /* packets sent and not confirmed: few enough for a receive ring and a busy neighbour */
    LONGEST_RESEND = 16 /* times the first delay */
};

/* From the previous board: payloads, in order. */
typedef struct {
    chain_buffer *buffer;
    uint32_t position; /* bytes of the payload that are there */
    uint8_t expected;  /* sequence number of the next packet */
    bool answer;       /* an acknowledgement is due */
    bool told_full;    /* the last acknowledgement reported no room */
} receiver;

/* To the next board: go-back-N. Packets are counted within the payload. */
typedef struct {
    chain_buffer *buffer;
    uint32_t confirmed;
    uint32_t next;
    uint32_t credit;  /* packets that the receiver has room for, beyond those confirmed */
    uint32_t since;   /* ticks when something was last confirmed, or sent again */
    uint32_t delay;   /* ticks after `since` until packets are sent again */
    uint8_t sequence; /* number of the first packet that is not confirmed */
    uint32_t recover; /* end of what was sent before going back: until it is confirmed, repeated ACKs prove no new loss */
} sender;

static struct {
    mcud_frame received[PORTS];
    uint8_t sent[PORTS][SENT_BYTES]; /* the encoded frame that a port is sending */
    receiver in;
    sender out;
    chain_counts counts;
    volatile uint32_t ticks;   /* of port_work() */
    volatile uint32_t session; /* 0 before the first one, and while one is prepared */
    uint32_t resend_ticks;
} links;

static uint32_t packets(const chain_buffer *buffer)
{
    return (buffer->count + PACKET_BYTES - 1u) / PACKET_BYTES;
}

static uint32_t least(uint32_t one, uint32_t other)
{
    return one < other ? one : other;
}

/* The place for the bytes of the packet that a port sends next. */
static uint8_t *packet_bytes(uint32_t port)
{
    return links.sent[port] + 1 + FRAME_HEADER_BYTES + SESSION_BYTES;
}

/* COBS of at most 253 bytes after bytes[0], in place: bytes[0] and each zero become the distance to the next zero. */
static void encode(uint8_t *bytes, uint32_t count)
{
    uint8_t *code = bytes;
    const uint8_t *const end = bytes + 1 + count;
    for (uint8_t *at = memchr(code + 1, 0, count); at != NULL; at = memchr(code + 1, 0, (size_t)(end - code - 1))) {
        *code = (uint8_t)(at - code);
        code = at;
    }
    *code = (uint8_t)(bytes + count + 1 - code);
    bytes[count + 1] = 0;
}

/* Sends a packet whose `length` bytes after the session number are in place. */
static void send(uint32_t port, uint8_t type, uint8_t sequence, uint32_t length)
{
    uint8_t *const frame = links.sent[port] + 1;
    frame[1] = sequence;
    put_u32(frame + FRAME_HEADER_BYTES, links.session);
    const uint32_t count = frame_complete(frame, type, SESSION_BYTES + length);
    encode(links.sent[port], count);
    hal_port_send(port, links.sent[port], count + 2);
}

/* --- from the board before -------------------------------------------------------------------- */

static void take_packet(const uint8_t *bytes, uint32_t count, uint8_t sequence)
{
    receiver *const in = &links.in;
    in->answer = true;
    const uint32_t whole = least(PACKET_BYTES, in->buffer->count - in->position);
    if (sequence != in->expected || in->buffer->full || count != whole) {
        return;
    }
    memcpy(in->buffer->bytes + in->position, bytes, count);
    in->position += count;
    in->expected++;
    if (in->position == in->buffer->count) {
        in->position = 0;
        in->buffer->full = true;
    }
}

static void acknowledge(void)
{
    receiver *const in = &links.in;
    const bool full = in->buffer->full;
    if ((in->answer || (in->told_full && !full)) && !hal_port_sending(PORT_BEFORE)) {
        const uint32_t left = in->buffer->count - in->position;
        const uint32_t room = full ? 0 : least((left + PACKET_BYTES - 1u) / PACKET_BYTES, WINDOW);
        packet_bytes(PORT_BEFORE)[0] = (uint8_t)room;
        send(PORT_BEFORE, PACKET_ACK, in->expected, 1);
        in->answer = false;
        in->told_full = full;
    }
}

/* --- to the next board ---------------------------------------------------------------------- */

static void go_back(sender *out)
{
    links.counts.resends += out->next - out->confirmed;
    out->recover = out->next > out->recover ? out->next : out->recover;
    out->next = out->confirmed;
    out->since = hal_ticks();
}

static void take_acknowledgement(uint8_t sequence, uint8_t credit)
{
    sender *const out = &links.out;
    const uint32_t more = (uint8_t)(sequence - out->sequence);
    const uint32_t sent = out->next > out->recover ? out->next : out->recover;
    if (more > sent - out->confirmed) {
        return; /* it confirms packets that were not sent, or were confirmed before */
    }
    const bool had_room = out->credit > 0; /* without room, the receiver has dropped what was sent */
    out->credit = least(credit, WINDOW);
    if (more == 0) {
        if (out->next > out->confirmed && credit > 0 && (!had_room || out->confirmed >= out->recover)) {
            go_back(out); /* a packet after the lost one has arrived, or there is room again */
        }
        return;
    }
    out->confirmed += more;
    out->next = out->next > out->confirmed ? out->next : out->confirmed;
    out->sequence = sequence;
    out->since = hal_ticks();
    out->delay = links.resend_ticks;
    if (out->confirmed == packets(out->buffer)) {
        out->confirmed = 0;
        out->next = 0;
        out->recover = 0;
        out->buffer->full = false;
    }
}

static bool is_due(const sender *out)
{
    const bool waits = out->next > out->confirmed || out->credit == 0;
    return waits && hal_ticks() - out->since >= out->delay;
}

/* After a delay without confirmation, sends the unconfirmed packets again: at least one, even if the receiver had no
 * room. */
static void resend(sender *out)
{
    if (!is_due(out)) {
        return;
    }
    go_back(out);
    out->credit = out->credit > 0 ? out->credit : 1;
    const uint32_t longest = least(links.resend_ticks, CHAIN_MOST_TICKS / LONGEST_RESEND) * LONGEST_RESEND;
    out->delay = least(2 * out->delay, longest);
}

static void send_payload(void)
{
    sender *const out = &links.out;
    if (out->buffer->full) {
        resend(out);
    }
    while (!hal_port_sending(PORT_BEHIND) && out->buffer->full && out->next < packets(out->buffer) &&
           out->next < out->confirmed + out->credit) {
        if (out->next == out->confirmed) {
            out->since = hal_ticks();
        }
        const uint32_t first = out->next * PACKET_BYTES;
        const uint32_t count = least(PACKET_BYTES, out->buffer->count - first);
        memcpy(packet_bytes(PORT_BEHIND), out->buffer->bytes + first, count);
        send(PORT_BEHIND, PACKET_DATA, (uint8_t)(out->sequence + (out->next - out->confirmed)), count);
        out->next++;
    }
}

/* --- both ------------------------------------------------------------------------------------- */

static void receive(uint32_t port)
{
    mcud_frame *const frame = &links.received[port];
    const uint8_t *bytes;
    for (uint32_t count = hal_port_waiting(port, &bytes); count > 0; count = hal_port_waiting(port, &bytes)) {
        const uint32_t taken = frame_append(frame, bytes, count);
        hal_port_take(port, taken < count ? taken + 1 : taken);
        if (taken == count) {
            continue; /* the frame has not ended */
        }
        const bool any = frame->count > 0;
        if (!frame_receive(frame, 0)) {
            links.counts.damaged += any;
            continue;
        }
        const uint8_t *const data = frame_data(frame);
        if (frame->length <= SESSION_BYTES || get_u32(data) != links.session) {
            continue;
        }
        if (port == PORT_BEFORE && frame->bytes[0] == PACKET_DATA) {
            take_packet(data + SESSION_BYTES, frame->length - SESSION_BYTES, frame->bytes[1]);
        } else if (port == PORT_BEHIND && frame->bytes[0] == PACKET_ACK) {
            take_acknowledgement(frame->bytes[1], data[SESSION_BYTES]);
        }
    }
}

void port_work(void)
{
    if (links.session == 0) {
        return;
    }
    const uint32_t first = hal_ticks();
    const uint32_t interrupts = hal_port_ticks();
    if (links.in.buffer != NULL) {
        receive(PORT_BEFORE);
        acknowledge();
    }
    if (links.out.buffer != NULL) {
        receive(PORT_BEHIND);
        send_payload();
    }
    links.ticks += hal_ticks() - first - (hal_port_ticks() - interrupts);
}

void chain_links_poll(void)
{
    if (chain_links_wait() && is_due(&links.out)) {
        hal_port_wake();
    } else {
        hal_port_poll();
    }
}

uint32_t chain_links_ticks(void)
{
    return links.ticks + hal_port_ticks();
}

void chain_links_start(const chain_ends *ends, uint32_t session, uint32_t resend_ticks)
{
    chain_buffer *const in = ends->in;
    chain_buffer *const out = ends->out;
    links.session = 0; /* from here on port_work() does nothing */
    __asm__ volatile("" ::: "memory");
    in->full = false;
    out->full = false;
    memset(&links.received, 0, sizeof links.received);
    /* An ACK is due at once: the board before may wait already. */
    links.in = (receiver){ends->before ? in : NULL, 0, 0, true, false};
    links.out = (sender){ends->after ? out : NULL, 0, 0, 1, 0, resend_ticks, 0, 0};
    links.counts = (chain_counts){0, 0};
    links.resend_ticks = resend_ticks;
    __asm__ volatile("" ::: "memory");
    links.session = session;
}

bool chain_links_wait(void)
{
    return links.out.buffer != NULL && links.out.buffer->full;
}

chain_counts chain_links_counts(void)
{
    return links.counts;
}
