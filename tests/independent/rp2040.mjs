// rp2040js as a board: its UART0 or its USB at one port of this computer, and a boot loader at another one.
//
//     node rp2040.mjs FOLDER-WITH-NODE_MODULES uart|usb
//
// The first line of the output names both ports. Each connection to the boot loader sends a UF2 file and closes its
// half: the chip restarts with it, and the answer is "started", or the reason why the boot ROM would not start it.
// Status requests ("?") are answered with the clocks that the chip's own registers yield. "1200" is the host's touch: it
// sets this rate on the USB serial port and closes it.
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { resolve } from 'node:path';

import { UartLine, UsbLine } from './rp2040_lines.mjs';

const { RP2040, USBCDC } = createRequire(resolve(process.argv[2], 'package.json'))('rp2040js');
const OVER_USB = process.argv[3] === 'usb';

const FLASH = 0x10000000;
const FLASH_BYTES = 2 * 1024 * 1024;
const UF2_BLOCK = 512;
const UF2_MAGIC = [0x0a324655, 0x9e5d5157, 0x0ab16f30];
const UF2_HAS_FAMILY = 0x2000;
const RP2040_FAMILY = 0xe48bff56;
const STAGE_BYTES = 256;
const STAGE = 0x20041f00; // where the boot ROM copies the second stage
const INSTRUCTIONS = 100000; // between two looks at the sockets

const TOUCHED = 0x42; // breakpoint of the ROM's function that restarts the chip in its boot loader

let chip = null;
let line = null; // between the chip and the host
let host = null; // the connection to the serial port
let fault = '';
let restarted = false; // in its boot loader
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

// The boot ROM's table of functions with one function, by its code "UB": the breakpoint TOUCHED. Another one is a fault.
function loadRom(memory) {
  memory[0x14 / 4] = 0x40; // the table, which find() ignores
  memory[0x18 / 4] = 0x81; // find(): ldr r2, ="UB"; cmp r1, r2; beq; bkpt 0; movs r0, #0x91; bx lr
  memory.set([0x42914a02, 0xbe00d000, 0x47702091, 0x00004255, 0xbe00 | TOUCHED], 0x80 / 4);
}

function start(file) {
  const next = new RP2040();
  loadRom(next.bootrom);
  next.logger = {
    debug() {},
    info() {},
    warn: doubt,
    error: doubt,
  };
  next.onBreak = (code) => {
    restarted = code === TOUCHED && next.core.registers[0] === 0 && next.core.registers[1] === 0;
    if (!restarted) {
      complain(`breakpoint ${code}`);
    }
  };
  writeUf2(file, next.flash);
  const stage = next.flash.subarray(0, STAGE_BYTES);
  const stated = next.flashView.getUint32(STAGE_BYTES - 4, true);
  const computed = crc32(stage.subarray(0, STAGE_BYTES - 4));
  refuseUnless(stated === computed, `the CRC-32 of the second stage is ${computed}, not ${stated}`);
  next.sram.set(stage, STAGE - 0x20000000);
  next.core.SP = STAGE;
  next.core.PC = STAGE;
  chip = next;
  line = OVER_USB ? new UsbLine(next, new USBCDC(next.usbCtrl)) : new UartLine(next);
  fault = '';
  restarted = false;
  unmodelled = new Set();
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

function run() {
  scheduled = false;
  const { core, clock } = chip;
  let asleep = false;
  for (let i = 0; i < INSTRUCTIONS && !fault && !restarted && !asleep; i++) {
    line.feed();
    if (!core.waiting) {
      clock.tick((core.executeInstruction() * 1e9) / chip.clkSys);
    } else if (line.busy) {
      clock.tick(Math.max(1, Math.min(line.nanosToNext, clock.nanosToNextAlarm || Infinity)));
    } else {
      asleep = true;
    }
  }
  if (line.sent.length) {
    host?.write(Buffer.from(line.sent));
    line.sent = [];
  }
  if (fault) {
    console.error(fault);
  } else if (!asleep && !restarted) {
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
  const lacking = [...unmodelled].sort();
  return { fault, restarted, clkSys, clkPeri, baudRate, cycles: chip.core.cycles, unmodelled: lacking };
}

const serial = createServer((socket) => {
  host?.destroy();
  host = socket;
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.on('data', (data) => {
    line?.receive(data);
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
      } else if (request.toString('latin1') === '1200') {
        line.touch();
        schedule();
        answer = 'touched';
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
