"""An APS6404L, and the interfaces of RP2350 and i.MX RT1062 before and after they have started one."""

from __future__ import annotations

from collections import deque

from tests.chips.facts import Register
from tests.chips.machine import Machine

LEAVE_QUAD, RESET_ENABLE, RESET, READ_ID, ENTER_QUAD, QUAD_READ, QUAD_WRITE = (
    *(0xF5, 0x66, 0x99, 0x9F, 0x35),
    *(0xEB, 0x38),
)
ID = bytes([0, 0, 0, 0x0D, 0x5D, 0x46])
"""Nothing during the address, then producer, good die, and 64 Mbit."""
MOST_HZ, MOST_ID_HZ = 84_000_000, 33_000_000
"""Of bursts across pages, and of a read of the ID."""
MOST_SELECT_S, LEAST_DESELECT_S = 8e-6, 18e-9
QMI_SELECT = 9
SELECT_PINS = {"pico-plus2-usb": 47, "promicro-rp2350-usb": 19}
"""pimoroni_pico_plus2_rp2350.h, sparkfun_promicro_rp2350.h"""


class Aps6404l:
    """The chip: a command takes one frame. It may still be on four pins from an earlier program."""

    def __init__(self, quad: bool = True) -> None:
        self.quad = quad
        self._armed = self._was_reset = False

    def command(self, code: int, pads: int) -> bytes:
        """Return what follows the command."""
        if pads != (4 if self.quad else 1):
            assert (code, pads) == (LEAVE_QUAD, 4), f"command {code:#x} on {pads} pins, which it does not see"
            return b""
        armed, self._armed = self._armed, code == RESET_ENABLE
        if code == LEAVE_QUAD:
            self.quad = False
        elif code == RESET:
            assert armed, "a reset that was not enabled"
            self.quad, self._was_reset = False, True
        elif code == READ_ID:
            return ID
        elif code == ENTER_QUAD:
            assert self._was_reset, "in an unknown state"
            self.quad = True
        else:
            assert code == RESET_ENABLE, f"an unknown command {code:#x}"
        return b""


class Qmi:
    """The interface: while it is in direct mode, no flash answers."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._chip = Aps6404l()
        self._received: deque[int] = deque()
        self._reply: deque[int] | None = None
        (self._memory,) = (it for it in machine.board.memories if it.psram is not None)
        registers = machine.chip.registers
        machine.on_write |= {
            registers["XIP_QMI.DIRECT_CSR"].address: self._control,
            registers["XIP_QMI.DIRECT_TX"].address: self._send,
            registers["XIP_CTRL.CTRL"].address: self._open,
        }
        machine.on_read |= {
            registers["XIP_QMI.DIRECT_CSR"].address: self._status,
            registers["XIP_QMI.DIRECT_RX"].address: self._receive,
        }

    def _control(self, machine: Machine, register: Register, value: int) -> int:
        machine.flash_answers = not register.value(value, "EN")
        assert not register.value(value, "ASSERT_CS0N"), "a command for the flash"
        if not register.value(value, "ASSERT_CS1N"):
            self._reply = None
        elif self._reply is None:
            self._check_pin()
            self._reply = deque()
            self._new = True
        return value

    def _status(self, machine: Machine, register: Register, value: int) -> int:
        return value | register.fields["TXEMPTY"]

    def _send(self, machine: Machine, register: Register, value: int) -> int:
        csr = machine.chip.registers["XIP_QMI.DIRECT_CSR"]
        assert csr.value(machine.values[csr.address], "EN") and self._reply is not None, "no chip is selected"
        divider = csr.value(machine.values[csr.address], "CLKDIV") or 256
        assert machine.board.clock_hz / divider <= MOST_ID_HZ, "too fast for the ID"
        byte, pads = register.value(value, "DATA"), 1 << register.value(value, "IWIDTH")
        assert pads == 1 or register.value(value, "OE"), "four pins that nobody drives"
        if self._new:
            self._reply = deque(self._chip.command(byte, pads))
            self._new = False
            answer = 0xFF
        else:
            answer = self._reply.popleft() if self._reply else 0xFF
        if not register.value(value, "NOPUSH"):
            self._received.append(answer)
            assert len(self._received) <= 4, "more words than the FIFO holds"
        return 0

    def _receive(self, machine: Machine, register: Register, value: int) -> int:
        assert self._received, "nothing has been received"
        return self._received.popleft()

    def _open(self, machine: Machine, register: Register, value: int) -> int:
        if register.value(value, "WRITABLE_M1"):
            self._check_window()
            machine.map_twice(self._memory, self._memory.origin + 0x04000000)
        return value

    def _check_pin(self) -> None:
        machine = self._machine
        pin = SELECT_PINS[machine.board.name]
        reset = machine.chip.registers["RESETS.RESET"]
        assert not any(reset.value(machine.values[reset.address], it) for it in ("IO_BANK0", "PADS_BANK0"))
        assert machine.field(f"IO_BANK0.GPIO{pin}_CTRL", "FUNCSEL") == QMI_SELECT, "the pin selects nothing"
        pad = [machine.field(f"PADS_BANK0.GPIO{pin}", it) for it in ("ISO", "OD", "IE")]
        assert pad == [0, 0, 1], "the pad is off"

    def _check_window(self) -> None:
        """That the window says what the chip understands, and in its time."""
        machine = self._machine
        clock_hz = machine.board.clock_hz

        def timing(name: str) -> int:
            return machine.field("XIP_QMI.M1_TIMING", name)

        assert machine.flash_answers and self._chip.quad, "the memory is not on four pins"
        divider = timing("CLKDIV")
        assert divider and clock_hz / divider <= MOST_HZ, "too fast"
        assert 0 < timing("MAX_SELECT") * 64 / clock_hz <= MOST_SELECT_S, "no time for its refresh"
        pause = timing("MIN_DESELECT") + (divider + 1) // 2
        assert pause / clock_hz >= LEAST_DESELECT_S, "the pause is too short"
        assert timing("PAGEBREAK") == 2, "pages have 1 KiB"
        for kind, command, wait in (("R", QUAD_READ, 6), ("W", QUAD_WRITE, 0)):
            form = f"XIP_QMI.M1_{kind}FMT"
            words = [machine.field(f"XIP_QMI.M1_{kind}CMD", "PREFIX"), machine.field(form, "DTR")]
            widths = [machine.field(form, f"{it}_WIDTH") for it in ("PREFIX", "ADDR", "DUMMY", "DATA")]
            lengths = [machine.field(form, f"{it}_LEN") for it in ("PREFIX", "SUFFIX", "DUMMY")]
            asked = [*words, *widths, *lengths]
            assert asked == [command, 0, 2, 2, 2, 2, 1, 0, wait], (
                "a window that the memory does not understand"
            )


class FlexSpi2:
    """The FlexSPI2 of an i.MX RT1062 with its look-up table, and the chip at the pads of a Teensy 4.1."""

    PLL_HZ = 528_000_000
    DONE, RECEIVED = "IPCMDDONE", "IPRXWA"

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._chip = Aps6404l()
        (self._memory,) = (it for it in machine.board.memories if it.psram is not None)
        registers = machine.chip.registers
        machine.on_write |= {
            registers["FLEXSPI2.MCR0"].address: self._control,
            registers["FLEXSPI2.INTR"].address: self._clear,
            registers["FLEXSPI2.IPCMD"].address: self._run,
        }
        for number in range(64):
            machine.on_write[registers[f"FLEXSPI2.LUT{number}"].address] = self._table

    def _control(self, machine: Machine, register: Register, value: int) -> int:
        """A reset of the block ends at once."""
        return value & ~register.fields["SWRESET"]

    def _clear(self, machine: Machine, register: Register, value: int) -> int:
        return machine.values[register.address] & ~value

    def _table(self, machine: Machine, register: Register, value: int) -> int:
        assert machine.field("FLEXSPI2.LUTKEY") == 0x5AF05AF0 and machine.field("FLEXSPI2.LUTCR", "UNLOCK")
        assert not machine.field("FLEXSPI2.MCR0", "MDIS"), "the block is off"
        return value

    def _steps(self, sequence: int) -> list[tuple[int, int, int]]:
        """Operation, pads and operand of each step, up to the first one that stops."""
        words = [self._machine.field(f"FLEXSPI2.LUT{4 * sequence + word}") for word in range(4)]
        halves = [half for word in words for half in (word & 0xFFFF, word >> 16)]
        steps = [(it >> 10, 1 << (it >> 8 & 3), it & 255) for it in halves]
        return steps[: steps.index((0, 1, 0))]

    def _run(self, machine: Machine, register: Register, value: int) -> int:
        self.check_interface()
        steps = self._steps(machine.field("FLEXSPI2.IPCR1", "ISEQID"))
        operation, pads, code = steps[0]
        assert operation == 1 and machine.field("FLEXSPI2.IPCR0") == 0
        reply = self._chip.command(code, pads)
        if reply:
            assert steps[1:] == [(12, 1, 24), (9, 1, 4)] and machine.field("FLEXSPI2.IPCR1", "IDATSZ") == 4
            received = machine.chip.registers["FLEXSPI2.RFDR0"].address
            machine.values[received] = int.from_bytes(reply[3:6] + b"\0", "little")
            machine.set_field("FLEXSPI2.INTR", self.RECEIVED, 1)
        machine.set_field("FLEXSPI2.INTR", self.DONE, 1)
        if code == ENTER_QUAD:
            self.check_window()
            machine.map_memory(self._memory)
        return 0

    @property
    def _hz(self) -> float:
        return self.PLL_HZ / (self._machine.field("CCM.CBCMR", "FLEXSPI2_PODF") + 1)

    def check_interface(self) -> None:
        """Check that a command reaches the chip."""
        machine = self._machine
        assert machine.field("CCM_ANALOG.PLL_SYS", "LOCK") and machine.field("CCM.CCGR7", "CG1") == 3
        assert machine.field("CCM.CBCMR", "FLEXSPI2_CLK_SEL") == 3, "not from the PLL of 528 MHz"
        assert not machine.field("FLEXSPI2.MCR0", "MDIS"), "the block is off"
        assert machine.field("FLEXSPI2.MCR0", "RXCLKSRC") == 1, "reads by the strobe, looped back"
        for pad in range(22, 30):
            form = [machine.field(f"IOMUXC.SW_MUX_CTL_PAD_GPIO_EMC_{pad}", it) for it in ("MUX_MODE", "SION")]
            assert form == [8, 1], f"GPIO_EMC_{pad} belongs to something else"
            speed = [machine.field(f"IOMUXC.SW_PAD_CTL_PAD_GPIO_EMC_{pad}", it) for it in ("DSE", "SPEED")]
            assert speed == [7, 3], f"GPIO_EMC_{pad} is slow"
        for chip_select in (22, 24):
            pulls = [
                machine.field(f"IOMUXC.SW_PAD_CTL_PAD_GPIO_EMC_{chip_select}", it)
                for it in ("PKE", "PUE", "PUS")
            ]
            assert pulls == [1, 1, 2], "a chip that may be selected"
        for signal in ("DQS_FA", *(f"IO_FA_BIT{bit}" for bit in range(4)), "SCK_FA"):
            assert machine.field(f"IOMUXC.FLEXSPI2_IPP_IND_{signal}_SELECT_INPUT", "DAISY") == 1, signal

    def check_window(self) -> None:
        """Check that an access of the core is a command that the chip understands, in its time."""
        machine = self._machine
        assert self._hz <= 133_000_000, "too fast for the memory"
        assert not machine.field("FLEXSPI2.AHBCR", "PREFETCHEN"), "bursts across pages, without refresh"
        assert machine.field("FLEXSPI2.FLSHCR1A1", "CSINTERVAL") / self._hz >= LEAST_DESELECT_S, "pause"
        assert machine.field("FLEXSPI2.FLSHA1CR0", "FLSHSZ") * 1024 == self._memory.bytes
        for kind, code, rest in (
            ("ARD", QUAD_READ, [(2, 4, 24), (12, 4, 6), (9, 4, 4)]),
            ("AWR", QUAD_WRITE, [(2, 4, 24), (8, 4, 4)]),
        ):
            number = machine.field("FLEXSPI2.FLSHCR2A1", f"{kind}SEQID")
            assert machine.field("FLEXSPI2.FLSHCR2A1", f"{kind}SEQNUM") == 0, "more than one sequence"
            assert self._steps(number) == [(1, 4, code), *rest], "steps that the memory does not understand"
