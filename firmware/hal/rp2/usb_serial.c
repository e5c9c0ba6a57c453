/* The line to the host as a serial port over USB (class CDC-ACM), in place of a UART. It has no baud rate.
 *
 * Bytes wait in the packet that the host sent, and the host keeps the next one until they are read: nothing is lost,
 * and no ring is needed. Without a host, or with one that reads nothing, sent bytes are dropped after a second.
 *
 * A host that sets MCUD_TOUCH_BAUD (1200) and closes the port (DTR off) restarts the chip in its boot loader, as on an Arduino.
 */
#include <stddef.h>

#include "hal_parts.h"
#include "mcud_board.h"
#include "mcud_hal.h"
#include "registers.h"
#include "rp2.h"
#include "usb.h"

enum { DEVICE = 1, CONFIGURATION = 2, STRING = 3, INTERFACE = 4, ENDPOINT = 5, CLASS_INTERFACE = 0x24 };
enum { COMMUNICATIONS = 2, ABSTRACT_CONTROL = 2, DATA = 10, BULK = 2, INTERRUPT = 3 };
enum { NOTIFIES = 0x81, SENDS = 0x82, RECEIVES = 0x02 };
enum { SET_LINE_CODING = 0x20, GET_LINE_CODING = 0x21, SET_CONTROL_LINE_STATE = 0x22 };
enum { LINE_CODING_BYTES = 7 };

#define LOW(n) ((n) & 0xFF)
#define HIGH(n) ((n) >> 8)

static const uint8_t device[] = {
    18, DEVICE, LOW(0x200), HIGH(0x200), COMMUNICATIONS, 0, 0, USB_PACKET,
    LOW(MCUD_USB_VENDOR), HIGH(MCUD_USB_VENDOR), LOW(MCUD_USB_PRODUCT), HIGH(MCUD_USB_PRODUCT), LOW(0x100), HIGH(0x100),
    1, 2, 0, 1, /* strings: vendor, product, no serial number; one configuration */
};

enum { CONFIGURATION_BYTES = 67, MILLIAMPERES = 100 };

static const uint8_t configuration[] = {
    9, CONFIGURATION, LOW(CONFIGURATION_BYTES), HIGH(CONFIGURATION_BYTES), 2, 1, 0, 0x80, MILLIAMPERES / 2,
    9, INTERFACE, 0, 0, 1, COMMUNICATIONS, ABSTRACT_CONTROL, 0, 0,
    5, CLASS_INTERFACE, 0, LOW(0x110), HIGH(0x110), /* header */
    5, CLASS_INTERFACE, 1, 0, 1,                    /* calls: none; the data are on interface 1 */
    4, CLASS_INTERFACE, 2, 2,                       /* it has a line coding and the lines DTR and RTS */
    5, CLASS_INTERFACE, 6, 0, 1,                    /* interface 0 controls interface 1 */
    7, ENDPOINT, NOTIFIES, INTERRUPT, 8, 0, 16,     /* polled every 16 ms, never sends */
    9, INTERFACE, 1, 0, 2, DATA, 0, 0, 0,
    7, ENDPOINT, RECEIVES, BULK, USB_PACKET, 0, 0,
    7, ENDPOINT, SENDS, BULK, USB_PACKET, 0, 0,
};

static const uint8_t languages[] = {4, STRING, LOW(0x409), HIGH(0x409)};
static const uint8_t vendor_name[] = {20, STRING, 'm', 0, 'c', 0, 'u', 0, 'd', 0, 'e', 0, 'p', 0, 'l', 0, 'o', 0, 'y', 0};
static const uint8_t product_name[] = {22, STRING, 'S', 0, 'e', 0, 'r', 0, 'i', 0, 'a', 0, 'l', 0, ' ', 0, 'U', 0, 'S', 0, 'B', 0};

/* What the host has set: 115200 baud, 1 stop bit, no parity, 8 bits until then. Only MCUD_TOUCH_BAUD has an effect. */
static uint8_t line_coding[LINE_CODING_BYTES] = {0x00, 0xC2, 0x01, 0x00, 0, 0, 8};
static uint8_t terminal_ready; /* DTR */

static volatile uint8_t configured;

static struct {
    volatile uint8_t waits;   /* the host has not yet taken the packet */
    volatile uint8_t ignored; /* the host did not take it for a second, or there is no host */
    uint8_t filled;           /* bytes of the next packet */
    uint8_t open;             /* the last packet was full: the host waits for the end of the message */
    uint8_t cut;              /* bytes were dropped after the last packet */
    uint32_t data1;
} sender;

static struct {
    volatile uint8_t count; /* bytes of the packet */
    volatile uint8_t next;
    uint32_t data1;
} receiver;

usb_answer serial_descriptor(uint32_t kind, uint32_t index)
{
    static const usb_answer strings[] = {
        {languages, sizeof languages}, {vendor_name, sizeof vendor_name}, {product_name, sizeof product_name}};
    if (kind == DEVICE) {
        return (usb_answer){device, sizeof device};
    }
    if (kind == CONFIGURATION) {
        return (usb_answer){configuration, sizeof configuration};
    }
    if (kind == STRING && index < sizeof strings / sizeof strings[0]) {
        return strings[index];
    }
    return (usb_answer){NULL, 0};
}

usb_answer serial_request(const usb_request *request)
{
    switch (request->code) {
    case SET_CONTROL_LINE_STATE:
        terminal_ready = request->value & 1u;
        return (usb_answer){line_coding, 0};
    case SET_LINE_CODING:
        return (usb_answer){line_coding, 0};
    case GET_LINE_CODING:
        return (usb_answer){line_coding, LINE_CODING_BYTES};
    default:
        return (usb_answer){NULL, 0};
    }
}

void serial_take(const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < LINE_CODING_BYTES; i++) {
        line_coding[i] = bytes[i];
    }
}

void serial_answered(void)
{
    const uint32_t baud = line_coding[0] | (uint32_t)line_coding[1] << 8 | (uint32_t)line_coding[2] << 16 |
                          (uint32_t)line_coding[3] << 24;
    if (baud == MCUD_TOUCH_BAUD && terminal_ready == 0u) {
        rp2_start_boot_loader();
    }
}

static void expect_packet(void)
{
    receiver.count = 0;
    receiver.next = 0;
    usb_hand_over(USB_DPRAM_EP2_OUT_BUFFER_CONTROL, USB_PACKET | receiver.data1);
    receiver.data1 ^= USB_DATA1;
}

static void stop_sending(void)
{
    reg_write(USB_DPRAM + USB_DPRAM_EP2_IN_BUFFER_CONTROL, 0u);
    sender.waits = 0;
    sender.ignored = 0;
    sender.filled = 0;
    sender.open = 0;
    sender.cut = 0;
    sender.data1 = 0;
}

static void stop_receiving(void)
{
    reg_write(USB_DPRAM + USB_DPRAM_EP2_OUT_BUFFER_CONTROL, 0u);
    receiver.count = 0;
    receiver.next = 0;
    receiver.data1 = 0;
}

static uint32_t endpoint_control(uint32_t kind, uint32_t place)
{
    return USB_DPRAM_EP1_IN_CONTROL_ENABLE | USB_DPRAM_EP1_IN_CONTROL_INTERRUPT_PER_BUFF |
           USB_DPRAM_EP1_IN_CONTROL_ENDPOINT_TYPE(kind) | USB_DPRAM_EP1_IN_CONTROL_BUFFER_ADDRESS(place);
}

void serial_configure(bool on)
{
    configured = on;
    terminal_ready = 0;
    stop_sending();
    stop_receiving();
    reg_write(USB_DPRAM + USB_DPRAM_EP1_IN_BUFFER_CONTROL, 0u);
    reg_write(USB_DPRAM + USB_DPRAM_EP1_IN_CONTROL, on ? endpoint_control(INTERRUPT, USB_NOTIFICATION_PACKET) : 0u);
    reg_write(USB_DPRAM + USB_DPRAM_EP2_IN_CONTROL, on ? endpoint_control(BULK, USB_SENT_PACKET) : 0u);
    reg_write(USB_DPRAM + USB_DPRAM_EP2_OUT_CONTROL, on ? endpoint_control(BULK, USB_RECEIVED_PACKET) : 0u);
    if (on) {
        expect_packet();
    }
}

void serial_clear(uint32_t endpoint)
{
    if (endpoint == SENDS) {
        stop_sending();
    } else if (endpoint == RECEIVES && configured) {
        stop_receiving();
        expect_packet();
    }
}

void serial_moved(uint32_t endpoints)
{
    if ((endpoints & USB_BUFF_STATUS_EP2_IN) != 0u) {
        sender.waits = 0;
        sender.ignored = 0;
    }
    if ((endpoints & USB_BUFF_STATUS_EP2_OUT) != 0u) {
        receiver.count = (uint8_t)(reg_read(USB_DPRAM + USB_DPRAM_EP2_OUT_BUFFER_CONTROL) & USB_LENGTH);
        if (receiver.count == 0u) {
            expect_packet();
        }
    }
}

static bool is_ready(void)
{
    return configured && !sender.waits;
}

/* Waits until the host has configured the device and taken the last packet: up to a second the first time, later not at
 * all. */
static bool can_send(void)
{
    if (!is_ready() && !sender.ignored) {
        const uint32_t since = hal_ticks();
        while (!is_ready() && !sender.ignored) {
            sender.ignored = hal_ticks() - since > hal_ticks_hz();
        }
    }
    return is_ready();
}

/* Interrupts are off: a reset of the bus may come at any time. */
static void send_packet(void)
{
    sender.waits = 1;
    sender.ignored = 0;
    sender.open = sender.filled == USB_PACKET;
    usb_hand_over(USB_DPRAM_EP2_IN_BUFFER_CONTROL, sender.filled | USB_FULL | sender.data1);
    sender.filled = 0;
    sender.data1 ^= USB_DATA1;
}

static void put(uint8_t byte)
{
    volatile uint8_t *const packet = (volatile uint8_t *)(uintptr_t)(USB_DPRAM + USB_SENT_PACKET);
    core_interrupts_off();
    packet[sender.filled] = byte;
    sender.filled++;
    if (sender.filled == USB_PACKET && configured) {
        send_packet();
    }
    core_interrupts_on();
}

/* If bytes were dropped, a zero comes first: it ends the part of an old message that a late reader still gets. */
static void send_byte(uint8_t byte)
{
    if (!can_send()) {
        sender.cut = 1;
        return;
    }
    if (sender.cut) {
        sender.cut = 0;
        put(0u);
    }
    put(byte);
}

/* Sends the bytes of the next packet, or an empty packet after a full one: the host may keep packets until a short one
 * comes. */
static void end_message(void)
{
    if ((sender.filled > 0u || sender.open) && can_send()) {
        core_interrupts_off();
        if (configured) {
            send_packet();
        }
        core_interrupts_on();
    }
}

void hal_uart_write(const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        send_byte(bytes[i]);
    }
    if (count > 0u && (bytes[count - 1u] == 0u || bytes[count - 1u] == (uint8_t)'\n')) {
        end_message();
    }
}

int32_t hal_uart_read(void)
{
    int32_t byte = -1;
    core_interrupts_off();
    if (receiver.next < receiver.count) {
        byte = *(volatile uint8_t *)(uintptr_t)(USB_DPRAM + USB_RECEIVED_PACKET + receiver.next);
        receiver.next++;
        if (receiver.next == receiver.count) {
            expect_packet();
        }
    }
    core_interrupts_on();
    return byte;
}

void hal_wait(void)
{
    end_message();
    core_interrupts_off(); /* between the check and the sleep no packet may slip in unseen */
    if (receiver.next == receiver.count) {
        core_sleep();
    }
    core_interrupts_on();
}
