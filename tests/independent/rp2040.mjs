// rp2040js as a board: its UART0 at one port of this computer, and a boot loader at another one.
//
//     node rp2040.mjs FOLDER-WITH-NODE_MODULES
//
// The first line of the output names both ports. Each connection to the boot loader sends a UF2 file and closes its
// half: the chip restarts with it, and the answer is "started", or the reason why the boot ROM would not start it.
// Status requests ("?") are answered with the clocks that the chip's own registers yield.
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { resolve } from 'node:path';

const { RP2040 } = createRequire(resolve(process.argv[2], 'package.json'))('rp2040js');

const FLASH = 0x10000000;
const FLASH_BYTES = 2 * 1024 * 1024;
const UF2_BLOCK = 512;
const UF2_MAGIC = [0x0a324655, 0x9e5d5157, 0x0ab16f30];
const UF2_HAS_FAMILY = 0x2000;
const RP2040_FAMILY = 0xe48bff56;
const STAGE_BYTES = 256;
const STAGE = 0x20041f00; // where the boot ROM copies the second stage
const BITS_PER_BYTE = 10;
const INSTRUCTIONS = 100000; // between two looks at the sockets

let chip = null;
let host = null; // the connection to the serial port
let fault = '';
let pending = []; // bytes from the host
let sent = [];
let nextByteNanos = 0;
let scheduled = false;
let unmodelled = new Set();

// RP2040 Datasheet, 2.8.1.3.1: polynomial 0x04C11DB7, the most significant bit first, from all ones on.
function crc32(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) {
      value = (value << 1) ^ (value < 0 ? 0x04c11db7 : 0);
    }
  }
  return value >>> 0;
}

function refuseUnless(condition, reason) {
  if (!condition) {
    throw new Error(reason);
  }
}

// Microsoft's UF2: every block is of this family, the blocks are in order, and none lies outside of the flash.
function writeUf2(file, flash) {
  refuseUnless(file.length > 0 && file.length % UF2_BLOCK === 0, `${file.length} bytes are no UF2 file`);
  const count = file.length / UF2_BLOCK;
  for (let number = 0; number < count; number++) {
    const block = file.subarray(number * UF2_BLOCK, (number + 1) * UF2_BLOCK);
    const word = (index) => block.readUInt32LE(4 * index);
    const magic = [word(0), word(1), word(127)];
    refuseUnless(magic.every((it, index) => it === UF2_MAGIC[index]), `block ${number} has no magic numbers`);
    refuseUnless(word(2) === UF2_HAS_FAMILY && word(7) === RP2040_FAMILY, `block ${number} is not for an RP2040`);
    refuseUnless(word(5) === number && word(6) === count, `block ${number} says ${word(5)} of ${word(6)}`);
    refuseUnless(word(4) === 256 && word(3) % 256 === 0, `block ${number} is no page of the flash`);
    refuseUnless(word(3) >= FLASH && word(3) + 256 <= FLASH + FLASH_BYTES, `block ${number} is outside of the flash`);
    flash.set(block.subarray(32, 32 + 256), word(3) - FLASH);
  }
}

function start(file) {
  const next = new RP2040();
  next.logger = {
    debug() {},
    info() {},
    warn: doubt,
    error: doubt,
  };
  next.onBreak = (code) => complain(`breakpoint ${code}`);
  writeUf2(file, next.flash);
  const stage = next.flash.subarray(0, STAGE_BYTES);
  const stated = next.flashView.getUint32(STAGE_BYTES - 4, true);
  const computed = crc32(stage.subarray(0, STAGE_BYTES - 4));
  refuseUnless(stated === computed, `the CRC-32 of the second stage is ${computed}, not ${stated}`);
  next.sram.set(stage, STAGE - 0x20000000);
  next.core.SP = STAGE;
  next.core.PC = STAGE;
  next.uart[0].onByte = (byte) => sent.push(byte);
  chip = next;
  fault = '';
  unmodelled = new Set();
  pending = [];
  sent = [];
  nextByteNanos = 0;
  schedule();
}

// Registers that the model lacks are listed; anything else that it does not expect ends the run.
function doubt(part, text) {
  const lacking = /^Unimplemented peripheral (read|write) (?:from|to) (0x[0-9a-f]+)/.exec(text);
  if (lacking) {
    unmodelled.add(`${part} ${lacking[2]}`);
  } else {
    complain(`${part}: ${text}`);
  }
}

function complain(text) {
  fault ||= `${text} (pc ${chip ? chip.core.PC.toString(16) : ''})`;
}

// The line delivers bytes at its rate, and keeps those that the receiver's FIFO has no room for.
function feed() {
  const uart = chip.uart[0];
  if (pending.length && uart.enabled && uart.rxEnabled && !uart.rxFIFO.full && chip.clock.nanos >= nextByteNanos) {
    uart.feedByte(pending.shift());
    nextByteNanos = chip.clock.nanos + (BITS_PER_BYTE * 1e9) / uart.baudRate;
  }
}

function run() {
  scheduled = false;
  const { core, clock } = chip;
  let asleep = false;
  for (let i = 0; i < INSTRUCTIONS && !fault && !asleep; i++) {
    if (pending.length) {
      feed();
    }
    if (!core.waiting) {
      clock.tick((core.executeInstruction() * 1e9) / chip.clkSys);
    } else if (pending.length) {
      clock.tick(Math.max(1, Math.min(nextByteNanos - clock.nanos, clock.nanosToNextAlarm || Infinity)));
    } else {
      asleep = true;
    }
  }
  if (sent.length) {
    host?.write(Buffer.from(sent));
    sent = [];
  }
  if (fault) {
    console.error(fault);
  } else if (!asleep) {
    schedule();
  }
}

function schedule() {
  if (!scheduled && chip) {
    scheduled = true;
    setImmediate(run);
  }
}

function clocks() {
  const { clkSys, clkPeri } = chip;
  const { baudRate } = chip.uart[0];
  return { fault, clkSys, clkPeri, baudRate, cycles: chip.core.cycles, unmodelled: [...unmodelled].sort() };
}

const serial = createServer((socket) => {
  host?.destroy();
  host = socket;
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.on('data', (data) => {
    for (const byte of data) {
      pending.push(byte);
    }
    schedule();
  });
});

const loader = createServer({ allowHalfOpen: true }, (socket) => {
  const parts = [];
  socket.on('error', () => {});
  socket.on('data', (data) => parts.push(data));
  socket.on('end', () => {
    const request = Buffer.concat(parts);
    let answer = 'started';
    try {
      if (request.toString('latin1') === '?') {
        answer = JSON.stringify(clocks());
      } else {
        start(request);
      }
    } catch (error) {
      answer = error.message;
    }
    socket.end(`${answer}\n`);
  });
});

serial.listen(0, '127.0.0.1', () =>
  loader.listen(0, '127.0.0.1', () => console.log(`${serial.address().port} ${loader.address().port}`)),
);
