// The lines of an RP2040 of rp2040js to the host: UART0 at its baud rate, and a serial port over USB.
//
// Of each: `sent`, bytes to the host; `receive`, bytes from it; `busy`, whether something will happen although the core
// sleeps, in `nanosToNext` at the latest; `feed`, called before each instruction.

const BITS_PER_BYTE = 10;
const PACKET = 64;
const SET_LINE_CODING = 0x20;
const SET_CONTROL_LINE_STATE = 0x22;
const TO_DEVICE_CLASS_INTERFACE = 0x21;

// The line delivers bytes at its rate, and keeps those that the receiver's FIFO has no room for.
export class UartLine {
  constructor(chip) {
    this.chip = chip;
    this.sent = [];
    this.pending = [];
    this.nextNanos = 0;
    chip.uart[0].onByte = (byte) => this.sent.push(byte);
  }

  receive(data) {
    this.pending.push(...data);
  }

  get busy() {
    return this.pending.length > 0;
  }

  get nanosToNext() {
    return this.nextNanos - this.chip.clock.nanos;
  }

  feed() {
    const { clock, uart } = this.chip;
    const free = uart[0].enabled && uart[0].rxEnabled && !uart[0].rxFIFO.full;
    if (this.pending.length && free && clock.nanos >= this.nextNanos) {
      uart[0].feedByte(this.pending.shift());
      this.nextNanos = clock.nanos + (BITS_PER_BYTE * 1e9) / uart[0].baudRate;
    }
  }
}

// rp2040js's own host (USBCDC) finds and configures the device. It answers each packet that the device expects at once,
// if need be with an empty one; here a packet comes when there are bytes, as from a real host.
export class UsbLine {
  constructor(chip, cdc) {
    this.chip = chip;
    this.cdc = cdc;
    this.usb = chip.usbCtrl;
    this.sent = [];
    this.pending = [];
    this.expects = false; // the device, a packet of data
    this.requests = []; // still to be made: [request, bytes that follow it]
    cdc.onSerialData = (bytes) => this.sent.push(...bytes);
    this.usb.onEndpointRead = (endpoint) => this.expected(endpoint);
    const { onEndpointWrite } = this.usb;
    this.usb.onEndpointWrite = (endpoint, buffer) => {
      onEndpointWrite(endpoint, buffer);
      if (endpoint === 0 && buffer.length === 0 && this.requests.length) {
        this.requests.shift();
        this.request();
      }
    };
  }

  receive(data) {
    this.pending.push(...data);
    this.deliver();
  }

  // Linux does this for `stty 1200`: the rate with the other settings, then DTR and RTS off at the close.
  touch() {
    const rate = [1200 & 0xff, 1200 >> 8, 0, 0, 0, 0, 8];
    this.requests = [
      [[TO_DEVICE_CLASS_INTERFACE, SET_LINE_CODING, 0, 0, 0, 0, rate.length, 0], rate],
      [[TO_DEVICE_CLASS_INTERFACE, SET_CONTROL_LINE_STATE, 0, 0, 0, 0, 0, 0], []],
    ];
    this.request();
  }

  request() {
    if (this.requests.length) {
      this.usb.sendSetupPacket(Uint8Array.from(this.requests[0][0]));
    }
  }

  expected(endpoint) {
    if (endpoint === this.cdc.outEndpoint) {
      this.expects = true;
      this.deliver();
    } else if (endpoint === 0 && this.requests.length && this.requests[0][1].length) {
      this.usb.endpointReadDone(0, Uint8Array.from(this.requests[0][1]));
    }
  }

  deliver() {
    if (this.expects && this.pending.length) {
      this.expects = false;
      this.usb.endpointReadDone(this.cdc.outEndpoint, Uint8Array.from(this.pending.splice(0, PACKET)));
    }
  }

  get busy() {
    const alarms = [...this.usb.endpointReadAlarms, ...this.usb.endpointWriteAlarms];
    const moving = alarms.some((it) => it.buffers.length > 0);
    return moving || !this.cdc.initialized || this.requests.length > 0;
  }

  get nanosToNext() {
    return Infinity;
  }

  feed() {}
}
