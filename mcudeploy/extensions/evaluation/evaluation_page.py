"""The page of `evaluate --report`: figures, confusion matrix, worst samples. It loads no other file."""

from __future__ import annotations

import base64
import shlex
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.codegen.html_template import render_page
from mcudeploy.common.text import count_text, plain
from mcudeploy.extensions.evaluation.evaluation_results import Evaluation
from mcudeploy.report.wording import EVALUATED, class_name, percent, quality_texts, verdict_text
from mcudeploy.verify.preprocessing import image_shape

Report = Mapping[str, Any]

_LONGEST_SIDE = 320
"""Pixels of a picture in the page; larger ones lose rows and columns."""


def page(result: Evaluation, report: Report, command: Sequence[str]) -> str:
    """Return the page of an evaluation and its JSON object; `command` is the command line to show."""
    path, board = result.run.measured.device_run.deployment.model.path, report["run"]["board"]
    matrix = report["models"][0]["confusion"] or ()
    return render_page(
        "evaluation",
        title=plain(f"{path.name} on {board}"),
        model=plain(path.name),
        board=plain(board),
        samples=count_text(report["samples"], "sample"),
        passed=report["passed"],
        verdict=verdict_text(report),
        failures=[plain(failure) for failure in (*report["failures"], *report["warnings"])],
        models=[
            (EVALUATED[one["model"]], [it for it in quality_texts(report, one).items() if it[1]])
            for one in report["models"]
        ],
        agreement=[_agreement(one) for one in report["agreement"]],
        names=[_name(report, number) for number in range(len(matrix))],
        matrix=[_cells(row, at) for at, row in enumerate(matrix)],
        classes=[_class(report, one) for one in report["models"][0]["by_class"]],
        worst=[_worst(result, report, one) for one in report["worst"]],
        layers=[
            (plain(it["node"]), it["op"], f"{it['sqnr_db']:.1f} dB", f"{it['input_sqnr_db']:.1f} dB")
            for it in report["layers"]
        ],
        command=plain(shlex.join(("mcudeploy", *command))),
    )


def _name(report: Report, number: int) -> str:
    return plain(class_name(report, number))


def _agreement(one: Report) -> tuple[str, ...]:
    counts = ("" if one[key] is None else f"{one[key]:,}" for key in ("flips", "lost", "gained"))
    pair = " and ".join(EVALUATED[name] for name in one["models"])
    return (pair, *counts, f"{one['equal_outputs']:,}", f"{one['largest_difference']:.4g}")


def _cells(row: Sequence[int], right_class: int) -> list[dict[str, Any]]:
    """The cells of a row of the confusion matrix; the shade is the share of the row."""
    total = max(sum(row), 1)
    return [
        {
            "count": f"{count:,}" if count else "",
            "shade": f"{100 * count / total:.0f}",
            "right": at == right_class,
        }
        for at, count in enumerate(row)
    ]


def _class(report: Report, one: Report) -> tuple[str, ...]:
    shares = (percent(one[key]) for key in ("precision", "recall", "f1"))
    return (_name(report, one["class"]), f"{one['samples']:,}", *shares)


def _worst(result: Evaluation, report: Report, one: Report) -> dict[str, Any]:
    classes = [None if one[key] is None else _name(report, one[key]) for key in ("wanted", "computed")]
    return {
        "name": plain(one["name"]),
        "wanted": classes[0],
        "computed": classes[1],
        "loss": f"{one['loss']:.4g}",
        "picture": _picture(result, one["number"]),
    }


def _picture(result: Evaluation, number: int) -> str | None:
    """The input of a sample as a PNG in a data URL; None if it is not an image."""
    graph = result.run.measured.device_run.deployment.plan.graph
    io = graph.own_inputs()[0]
    shape = image_shape(io.shape)
    if shape is None or min(shape.height, shape.width) < 2:
        return None
    values = result.data.sample(number, graph).inputs[io.name].astype(np.float64)
    pixels = values.reshape(shape.dims)
    pixels = np.moveaxis(pixels, 0, -1) if shape.channels_first else pixels
    step = -(-max(shape.height, shape.width) // _LONGEST_SIDE)
    pixels = pixels[::step, ::step]
    low, high = pixels.min(), pixels.max()
    scaled = (pixels - low) * (255 / (high - low) if high > low else 0.0)
    return f"data:image/png;base64,{base64.b64encode(png(np.rint(scaled).astype(np.uint8))).decode()}"


_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a PNG file of pixels [height, width, channels], with 1 (grey), 3 or 4 channels."""
    height, width, channels = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
