/* The USB device controller of RP2040 and RP2350: start, interrupt, and the requests of the host at endpoint 0.
 *
 * Not implemented: suspend (the chip keeps its full current), the remedy for revisions B0 and B1 of the RP2040 at a hub
 * whose other ports are busy (errata RP2040-E5).
 */
#include "usb.h"

#include <stddef.h>

#include "hal_parts.h"
#include "registers.h"
#include "rp2.h"

enum {
    GET_STATUS = 0,
    CLEAR_FEATURE = 1,
    SET_ADDRESS = 5,
    GET_DESCRIPTOR = 6,
    GET_CONFIGURATION = 8,
    SET_CONFIGURATION = 9,
    GET_INTERFACE = 10,
    SET_INTERFACE = 11
};

enum { TO_ENDPOINT = 2, RECIPIENT = 0x1F, ENDPOINT_HALT = 0 };

enum { AVAILABLE = USB_DPRAM_EP0_IN_BUFFER_CONTROL_AVAILABLE_0, STALL = USB_DPRAM_EP0_IN_BUFFER_CONTROL_STALL };

/* The request that is being answered. */
static struct {
    enum { NOTHING, SENDS, TAKES, ACKNOWLEDGES } stage;
    usb_request request;
    const uint8_t *next; /* to be sent */
    uint32_t left;
    uint32_t data1; /* of the next packet */
} control;

static uint8_t configuration;

/* The controller may see the word in parts, so AVAILABLE follows after three clocks of its 48 MHz. */
void usb_hand_over(uint32_t buffer_control, uint32_t state)
{
    uint32_t count = 8;
    reg_write(USB_DPRAM + buffer_control, state);
    __asm__ volatile(".syntax unified\n\t" /* not the default of compilers for Cortex-M0+ */
                     "1: subs %0, #1\n\t"
                     "bne 1b"
                     : "+l"(count)
                     :
                     : "cc");
    reg_write(USB_DPRAM + buffer_control, state | AVAILABLE);
}

/* Sends the next packet. No descriptor's length is a multiple of a packet, so a short packet always ends the answer. */
static void send_part(void)
{
    uint8_t *const packet = (uint8_t *)(uintptr_t)(USB_DPRAM + USB_CONTROL_PACKET);
    const uint32_t count = control.left < USB_PACKET ? control.left : USB_PACKET;
    for (uint32_t i = 0; i < count; i++) {
        packet[i] = control.next[i];
    }
    control.next += count;
    control.left -= count;
    usb_hand_over(USB_DPRAM_EP0_IN_BUFFER_CONTROL, count | USB_FULL | control.data1);
    control.data1 ^= USB_DATA1;
}

static void acknowledge(void)
{
    control.stage = ACKNOWLEDGES;
    usb_hand_over(USB_DPRAM_EP0_IN_BUFFER_CONTROL, USB_FULL | USB_DATA1);
}

static void refuse(void)
{
    control.stage = NOTHING;
    reg_write(USB + USB_EP_STALL_ARM, USB_EP_STALL_ARM_EP0_IN | USB_EP_STALL_ARM_EP0_OUT);
    reg_write(USB_DPRAM + USB_DPRAM_EP0_IN_BUFFER_CONTROL, STALL);
    reg_write(USB_DPRAM + USB_DPRAM_EP0_OUT_BUFFER_CONTROL, STALL);
}

static void configure(uint32_t number)
{
    configuration = (uint8_t)number;
    serial_configure(number != 0u);
}

static usb_answer standard_request(const usb_request *request)
{
    static const uint8_t zeros[2]; /* powered by the bus, no endpoint is halted, the only setting of an interface */
    const usb_answer refused = {NULL, 0};
    const usb_answer done = {zeros, 0};
    switch (request->code) {
    case GET_STATUS:
        return (usb_answer){zeros, 2};
    case GET_INTERFACE:
        return (usb_answer){zeros, 1};
    case GET_CONFIGURATION:
        return (usb_answer){&configuration, 1};
    case GET_DESCRIPTOR:
        return serial_descriptor(request->value >> 8, request->value & 0xFFu);
    case SET_ADDRESS: /* the address takes effect after the acknowledgement */
        return done;
    case SET_CONFIGURATION:
        if (request->value > 1u) {
            return refused;
        }
        configure(request->value);
        return done;
    case SET_INTERFACE:
        return request->value == 0u ? done : refused;
    case CLEAR_FEATURE:
        if ((request->type & RECIPIENT) != TO_ENDPOINT || request->value != ENDPOINT_HALT) {
            return refused;
        }
        serial_clear(request->index);
        return done;
    default:
        return refused;
    }
}

static void begin_request(void)
{
    usb_request *const request = &control.request;
    const uint32_t low = reg_read(USB_DPRAM + USB_DPRAM_SETUP_PACKET_LOW);
    const uint32_t high = reg_read(USB_DPRAM + USB_DPRAM_SETUP_PACKET_HIGH);
    *request = (usb_request){low & 0xFFu, low >> 8 & 0xFFu, low >> 16, high & 0xFFFFu, high >> 16};
    reg_write(USB_DPRAM + USB_DPRAM_EP0_IN_BUFFER_CONTROL, 0u); /* a new request ends the previous one */
    reg_write(USB_DPRAM + USB_DPRAM_EP0_OUT_BUFFER_CONTROL, 0u);
    const uint32_t kind = request->type & USB_KIND;
    usb_answer answer = {NULL, 0};
    if (kind == USB_STANDARD) {
        answer = standard_request(request);
    } else if (kind == USB_CLASS) {
        answer = serial_request(request);
    }
    const bool to_host = (request->type & USB_TO_HOST) != 0u;
    if (answer.bytes == NULL || (!to_host && request->length > USB_PACKET)) {
        refuse();
    } else if (request->length == 0u) {
        acknowledge();
    } else if (to_host) {
        control.stage = SENDS;
        control.next = answer.bytes;
        control.left = answer.count < request->length ? answer.count : request->length;
        control.data1 = USB_DATA1;
        send_part();
    } else {
        control.stage = TAKES;
        usb_hand_over(USB_DPRAM_EP0_OUT_BUFFER_CONTROL, USB_PACKET | USB_DATA1);
    }
}

/* The packet to the host at endpoint 0 has gone. */
static void go_on(void)
{
    if (control.stage == SENDS) {
        if (control.left > 0u) {
            send_part();
        } else { /* the host acknowledges by an empty packet */
            control.stage = NOTHING;
            usb_hand_over(USB_DPRAM_EP0_OUT_BUFFER_CONTROL, USB_PACKET | USB_DATA1);
        }
    } else if (control.stage == ACKNOWLEDGES) {
        control.stage = NOTHING;
        if ((control.request.type & USB_KIND) == USB_CLASS) {
            serial_answered();
        } else if (control.request.code == SET_ADDRESS) {
            reg_write(USB + USB_ADDR_ENDP, control.request.value);
        }
    }
}

/* A packet of the host at endpoint 0 has come. */
static void take(void)
{
    if (control.stage == TAKES) {
        const uint32_t count = reg_read(USB_DPRAM + USB_DPRAM_EP0_OUT_BUFFER_CONTROL) & USB_LENGTH;
        serial_take((const uint8_t *)(uintptr_t)(USB_DPRAM + USB_CONTROL_PACKET), count);
        acknowledge();
    }
}

void uart_interrupt(void)
{
    const uint32_t causes = reg_read(USB + USB_INTS);
    if ((causes & USB_INTE_BUFF_STATUS) != 0u) {
        const uint32_t moved = reg_read(USB + USB_BUFF_STATUS);
        reg_write(USB + USB_BUFF_STATUS, moved); /* ones clear */
        if ((moved & USB_BUFF_STATUS_EP0_IN) != 0u) {
            go_on();
        }
        if ((moved & USB_BUFF_STATUS_EP0_OUT) != 0u) {
            take();
        }
        serial_moved(moved);
    }
    if ((causes & USB_INTE_BUS_RESET) != 0u) {
        reg_write(USB + USB_ADDR_ENDP, 0u);
        control.stage = NOTHING;
        configure(0);
        reg_write(USB + USB_SIE_STATUS, USB_SIE_STATUS_BUS_RESET);
    }
    if ((causes & USB_INTE_SETUP_REQ) != 0u) {
        reg_write(USB + USB_SIE_STATUS, USB_SIE_STATUS_SETUP_REC);
        begin_request();
    }
}

/* The reset comes first, so that the host sees the device disconnect before it connects. The chip does not measure
 * whether a cable supplies it. */
void rp2_start_line(void)
{
    reg_write(rp2_chip.usb_clock, 0u);
    rp2_reset(rp2_chip.usb_reset);
    rp2_start_pll(&rp2_chip.usb_pll);
    reg_write(rp2_chip.usb_clock, CLOCKS_CLK_USB_CTRL_ENABLE);
    reg_write(USB_DPRAM + USB_DPRAM_EP0_IN_BUFFER_CONTROL, 0u);
    reg_write(USB_DPRAM + USB_DPRAM_EP0_OUT_BUFFER_CONTROL, 0u);
    configure(0);
    reg_write(USB + USB_USB_MUXING, USB_USB_MUXING_TO_PHY | USB_USB_MUXING_SOFTCON);
    reg_write(USB + USB_USB_PWR, USB_USB_PWR_VBUS_DETECT | USB_USB_PWR_VBUS_DETECT_OVERRIDE_EN);
    reg_write(USB + USB_MAIN_CTRL, USB_MAIN_CTRL_CONTROLLER_EN); /* on RP2350 this ends the isolation of the pads, too */
    reg_write(USB + USB_INTE, USB_INTE_BUFF_STATUS | USB_INTE_BUS_RESET | USB_INTE_SETUP_REQ);
    reg_write(USB + USB_SIE_CTRL, USB_SIE_CTRL_EP0_INT_1BUF | USB_SIE_CTRL_PULLUP_EN);
}
