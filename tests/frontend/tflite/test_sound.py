"""Sound for a model with states: a WAV file is a sequence of runs."""

from __future__ import annotations

import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from flat_signal import SignalFile
from programs import HOST, QUICK

from mcudeploy.cli.main import cli
from mcudeploy.common.errors import UsageError
from mcudeploy.report.output_curves import output_curves
from tests import reports

SIZE, DELAY = 8, 5


@dataclass(frozen=True)
class Recording:
    """The format of a WAV file."""

    rate: int = 16_000
    width: int = 2
    channels: int = 1

    def write(self, path: Path, samples: np.ndarray) -> Path:
        with wave.open(str(path), "wb") as file:
            file.setnchannels(self.channels)
            file.setsampwidth(self.width)
            file.setframerate(self.rate)
            file.writeframes(samples.astype(f"<i{self.width}").tobytes())
        return path


def delay(folder: Path) -> Path:
    file = SignalFile(SIZE, 1)
    file.delay(DELAY)
    return file.flat.save(folder, [file.x], file.outputs)


def ramp(count: int) -> np.ndarray:
    return (np.arange(count) * 100 - 2000).astype(np.int16)


@pytest.mark.parametrize("steps", [None, 5])
def test_all_of_a_file_or_its_first_runs(steps: int | None, tmp_path: Path) -> None:
    sound = Recording().write(tmp_path / "ramp.wav", ramp(10 * SIZE + 3))
    report = reports.run_model(delay(tmp_path), HOST, QUICK, inputs=[sound], expected=[], steps=steps)
    assert report["verified"], report["reason"]
    values = [value for output in report["outputs"] for value in output["values"]]
    wanted = np.concatenate([np.zeros(DELAY, np.int16), ramp(10 * SIZE)])
    assert values == wanted[: SIZE * (steps or 10)].tolist()


def test_more_runs_than_the_file_has(tmp_path: Path) -> None:
    sound = Recording().write(tmp_path / "ramp.wav", ramp(3 * SIZE))
    with pytest.raises(UsageError, match="the inputs have 3 runs"):
        reports.run_model(delay(tmp_path), HOST, QUICK, inputs=[sound], expected=[], steps=4)


@pytest.mark.parametrize("format_", [Recording(rate=8000), Recording(width=4), Recording(channels=2)])
def test_other_recordings_are_refused(format_: Recording, tmp_path: Path) -> None:
    sound = format_.write(tmp_path / "ramp.wav", ramp(4 * SIZE))
    with pytest.raises(UsageError, match=r"ffmpeg|one channel"):
        reports.run_model(delay(tmp_path), HOST, QUICK, inputs=[sound], expected=[])


def test_the_report_shows_the_curve(tmp_path: Path) -> None:
    sound = Recording(rate=8000).write(tmp_path / "ramp.wav", ramp(12 * SIZE))
    page = tmp_path / "page.html"
    arguments = ["run", str(delay(tmp_path)), "--board", "host", "--input", str(sound)]
    ran = CliRunner().invoke(cli, [*arguments, "--sample-rate", "8000", "--report", str(page)])
    assert ran.exit_code == 0, ran.output
    assert "▁" in ran.output and "in run 11" in ran.output
    assert page.read_text("utf-8").count("in run 11") >= SIZE


def test_a_curve_has_the_largest_value_of_each_part() -> None:
    values = [0.0] * 50 + [8.0] + [1.0] * 49
    outputs = [
        {"name": "y", "elements": 1, "values": [value], "top": [{"index": 0, "label": "yes"}]}
        for value in values
    ]
    (curve,) = output_curves(outputs)
    assert (curve.name, curve.peak, curve.bars(10)) == ("y[0] yes", 50, "▁▁▁▁▁█▂▂▂▂")
    assert output_curves(outputs[:3]) == []


@pytest.mark.parametrize(("worst", "text"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_curves_of_values_that_are_not_finite(worst: float, text: str) -> None:
    outputs = [{"name": "y", "elements": 1, "values": [it], "top": []} for it in (0.0, 1.0, worst, 0.5)]
    (curve,) = output_curves(outputs)
    assert curve.bars(4) == "▁█!▅"
    assert curve.summary == f"{text} in run 2"
