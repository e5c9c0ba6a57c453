"""The table of register commands: each way and back, faults, and Vela's table as the second judge."""

from __future__ import annotations

import pytest

from mcudeploy.extensions.ethos_u.registers import LONG, OPERATIONS, SHORT, RegisterCommand, Stream, decode


def test_every_register_is_decoded_as_it_was_set() -> None:
    stream = Stream()
    expected = []
    for number, name in enumerate((*SHORT.values(), *LONG.values())):
        value = 1000 + number + (number << 33 if name in LONG.values() else 0)
        stream.set(**{name: value})
        expected.append(RegisterCommand(name, value))
    stream.operate("CONV", 3)
    stream.stop()
    assert list(decode(stream.array)) == [
        *expected,
        RegisterCommand("CONV", 3),
        RegisterCommand("STOP", 0xFFFF),
    ]


def test_negative_values_are_of_16_bits() -> None:
    stream = Stream()
    stream.set(IFM_ZERO_POINT=-3)
    stream.stop()
    assert next(decode(stream.words)).value == 0xFFFD


@pytest.mark.parametrize(
    ("name", "value"), [("IFM_REGION", 1 << 16), ("IFM_BASE0", -1), ("IFM_BASE0", 1 << 48)]
)
def test_values_that_a_register_cannot_hold_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        Stream().set(**{name: value})


@pytest.mark.parametrize(
    "words", [[], [0x0002], [0x4000], [0x7FF, 0], [0x1FE], [0x8000], [0x4FFF, 0, 0xFFFF0000]]
)
def test_streams_that_no_unit_understands_are_refused(words: list[int]) -> None:
    with pytest.raises(ValueError, match=r"unknown|STOP"):
        list(decode(words))


def test_the_table_is_that_of_vela() -> None:
    pytest.importorskip("ethosu", reason="Vela is not installed: pip install ethos-u-vela")
    from ethosu.vela.ethos_u55_regs import ethos_u55_regs as regs  # noqa: PLC0415

    short = {it.value: it.name.removeprefix("NPU_SET_").removeprefix("NPU_OP_") for it in regs.cmd0}
    assert short == {**OPERATIONS, **SHORT}
    assert {it.value: it.name.removeprefix("NPU_SET_") for it in regs.cmd1} == LONG
