/* The USB device of RP2040 and RP2350 in two parts: usb.c is the controller and endpoint 0, usb_serial.c the serial port
 * (class CDC-ACM) on it. */
#ifndef MCUD_RP2_USB_H
#define MCUD_RP2_USB_H

#include <stdbool.h>
#include <stdint.h>

/* RP2040 Datasheet: 4.1.4, RP2350 Datasheet: 12.7.6; the same addresses in both */
#define USB 0x50110000u
#define USB_ADDR_ENDP 0x0u
#define USB_MAIN_CTRL 0x40u
#define USB_MAIN_CTRL_CONTROLLER_EN (1u << 0)
#define USB_SIE_CTRL 0x4Cu
#define USB_SIE_CTRL_PULLUP_EN (1u << 16)
#define USB_SIE_CTRL_EP0_INT_1BUF (1u << 29)
#define USB_SIE_STATUS 0x50u
#define USB_SIE_STATUS_SETUP_REC (1u << 17)
#define USB_SIE_STATUS_BUS_RESET (1u << 19)
#define USB_BUFF_STATUS 0x58u
#define USB_BUFF_STATUS_EP0_IN (1u << 0)
#define USB_BUFF_STATUS_EP0_OUT (1u << 1)
#define USB_BUFF_STATUS_EP2_IN (1u << 4)
#define USB_BUFF_STATUS_EP2_OUT (1u << 5)
#define USB_EP_STALL_ARM 0x68u
#define USB_EP_STALL_ARM_EP0_IN (1u << 0)
#define USB_EP_STALL_ARM_EP0_OUT (1u << 1)
#define USB_USB_MUXING 0x74u
#define USB_USB_MUXING_TO_PHY (1u << 0)
#define USB_USB_MUXING_SOFTCON (1u << 3)
#define USB_USB_PWR 0x78u
#define USB_USB_PWR_VBUS_DETECT (1u << 2)
#define USB_USB_PWR_VBUS_DETECT_OVERRIDE_EN (1u << 3)
#define USB_INTE 0x90u
#define USB_INTE_BUFF_STATUS (1u << 4)
#define USB_INTE_BUS_RESET (1u << 12)
#define USB_INTE_SETUP_REQ (1u << 16)
#define USB_INTS 0x98u

/* The memory that the controller shares with the core: a request, the state of each endpoint, then their packets. */
#define USB_DPRAM 0x50100000u
#define USB_DPRAM_SETUP_PACKET_LOW 0x0u
#define USB_DPRAM_SETUP_PACKET_HIGH 0x4u
#define USB_DPRAM_EP1_IN_CONTROL 0x8u
#define USB_DPRAM_EP1_IN_CONTROL_BUFFER_ADDRESS(n) ((n) << 0)
#define USB_DPRAM_EP1_IN_CONTROL_ENDPOINT_TYPE(n) ((n) << 26)
#define USB_DPRAM_EP1_IN_CONTROL_INTERRUPT_PER_BUFF (1u << 29)
#define USB_DPRAM_EP1_IN_CONTROL_ENABLE (1u << 31)
#define USB_DPRAM_EP2_IN_CONTROL 0x10u
#define USB_DPRAM_EP2_OUT_CONTROL 0x14u
#define USB_DPRAM_EP0_IN_BUFFER_CONTROL 0x80u
#define USB_DPRAM_EP0_IN_BUFFER_CONTROL_LENGTH_0(n) ((n) << 0)
#define USB_DPRAM_EP0_IN_BUFFER_CONTROL_AVAILABLE_0 (1u << 10)
#define USB_DPRAM_EP0_IN_BUFFER_CONTROL_STALL (1u << 11)
#define USB_DPRAM_EP0_IN_BUFFER_CONTROL_PID_0 (1u << 13)
#define USB_DPRAM_EP0_IN_BUFFER_CONTROL_FULL_0 (1u << 15)
#define USB_DPRAM_EP0_OUT_BUFFER_CONTROL 0x84u
#define USB_DPRAM_EP1_IN_BUFFER_CONTROL 0x88u
#define USB_DPRAM_EP2_IN_BUFFER_CONTROL 0x90u
#define USB_DPRAM_EP2_OUT_BUFFER_CONTROL 0x94u

enum {
    USB_PACKET = 64, /* the longest packet of every endpoint, except that of notifications */
    USB_CONTROL_PACKET = 0x100, /* offsets of packets in the shared memory; the controller fixes the first */
    USB_RECEIVED_PACKET = 0x180,
    USB_SENT_PACKET = 0x1C0,
    USB_NOTIFICATION_PACKET = 0x200
};

/* Fields of a buffer's state: it has a packet to the host; the packet's number modulo 2 is 1; its length in bytes. */
enum {
    USB_FULL = USB_DPRAM_EP0_IN_BUFFER_CONTROL_FULL_0,
    USB_DATA1 = USB_DPRAM_EP0_IN_BUFFER_CONTROL_PID_0,
    USB_LENGTH = USB_DPRAM_EP0_IN_BUFFER_CONTROL_LENGTH_0(0x3FF)
};

/* A request of the host. */
typedef struct {
    uint32_t type; /* direction, kind and recipient */
    uint32_t code;
    uint32_t value;
    uint32_t index;
    uint32_t length;
} usb_request;

enum { USB_TO_HOST = 0x80, USB_KIND = 0x60, USB_STANDARD = 0x00, USB_CLASS = 0x20 };

/* An answer to a request; NULL refuses it. */
typedef struct {
    const uint8_t *bytes;
    uint32_t count;
} usb_answer;

/* --- usb.c ------------------------------------------------------------------------------------ */

/* Hands a packet to the controller, which sends or fills it. `state`: the value of its buffer control without
 * AVAILABLE. */
void usb_hand_over(uint32_t buffer_control, uint32_t state);

/* --- usb_serial.c, called by the interrupt ------------------------------------------------------ */

usb_answer serial_descriptor(uint32_t kind, uint32_t index);

/* The answer to a request of the class; it has no bytes if the request has none, or if the host sends them. */
usb_answer serial_request(const usb_request *request);

/* Takes the bytes that the host sent with a request of the class. */
void serial_take(const uint8_t *bytes, uint32_t count);

/* A request of the class has been answered to its end. */
void serial_answered(void);

/* The host has chosen the configuration, or none: then nothing is sent or received. */
void serial_configure(bool on);

/* The host has cleared an endpoint: the count of its packets begins again. */
void serial_clear(uint32_t endpoint);

/* Packets that have come and gone, by the bits of BUFF_STATUS. */
void serial_moved(uint32_t endpoints);

#endif
