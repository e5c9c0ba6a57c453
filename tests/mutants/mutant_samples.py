"""Mutants of sample files (.npy, .npz) and of hardware maps in YAML."""

from __future__ import annotations

import ast
import io
import json
import random
import zipfile
from pathlib import Path

import numpy as np
import yaml
from mutate_values import mutated_bytes, mutated_value

from mcudeploy.boards.catalogue import load_board
from mcudeploy.extensions.quantization.data import open_samples
from mcudeploy.frontend.onnx.nodes import Info
from mcudeploy.ir.graph import GraphIO
from mcudeploy.toolchain.hardware_map import entries_for
from mcudeploy.verify.preprocessing import Wanted, read_values

SHAPE = (1, 3, 4)
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 99)
ROWS = [
    {"connected": True, "id": "1", "platform": "stm32f405", "runner": "openocd", "serial": f"/dev/tty{at}"}
    for at in range(3)
]


class SampleSubject:
    """Mutants of arrays in a file, as a test set and as an input."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        stream = io.BytesIO()
        np.save(stream, np.zeros((5, *SHAPE[1:]), np.float32))
        self.array = stream.getvalue()
        self.wanted = Wanted(GraphIO("x", "x", SHAPE, "float32", np.arange(12, dtype=np.int32)), None)

    def __call__(self, source: random.Random) -> None:
        array = self._array(source)
        packed = source.random() < 0.5
        path = self.folder / ("mutant.npz" if packed else "mutant.npy")
        path.write_bytes(self._archive(array, source) if packed else array)
        samples = open_samples(path, (Info("x", SHAPE, "float32"),))
        for number in range(samples.count):
            samples.load(number)
        if not packed:
            read_values(path, self.wanted)

    def _array(self, source: random.Random) -> bytes:
        if source.random() < 0.4:
            return mutated_bytes(self.array, source)
        header = ast.literal_eval(self.array[10:128].decode())
        header["shape"] = list(header["shape"])
        text = repr(mutated_value(header, source))
        text = text.replace("[", "(").replace("]", ",)") if source.random() < 0.8 else text
        if source.random() < 0.3:
            text = mutated_bytes(text.encode(errors="replace"), source).decode("latin1")
        content = text.encode("latin1", "replace")[:60_000]
        return self.array[:8] + len(content).to_bytes(2, "little") + content + self.array[128:]

    def _archive(self, array: bytes, source: random.Random) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", source.choice(METHODS[:4])) as archive:
            archive.writestr(source.choice(("x.npy", "x", "y.npy")), array)
        content = bytearray(stream.getvalue())
        places = [at for at in range(len(content)) if content[at : at + 2] == b"PK"]
        match source.randrange(4):
            case 0:
                return mutated_bytes(bytes(content), source)
            case 1:  # encrypted
                for at, by in zip(places[:2], (6, 8), strict=True):
                    content[at + by] |= 1
            case 2:  # packed in another way
                for at, by in zip(places[:2], (8, 10), strict=True):
                    content[at + by] = source.choice(METHODS)
        return bytes(content)


class MapSubject:
    """Mutants of hardware maps, some with aliases."""

    def __init__(self, folder: Path) -> None:
        self.path, self.board = folder / "map.yaml", load_board("stm32f405")

    def __call__(self, source: random.Random) -> None:
        text = yaml.safe_dump(json.loads(json.dumps(mutated_value(ROWS, source))))
        if source.random() < 0.3:
            levels, each = source.randrange(1, 12), source.randrange(1, 10)
            text = "- &a0 {connected: true, serial: s, platform: stm32f405}\n"
            for level in range(levels):
                inner = ", ".join([f"*a{level}"] * each)
                text += f"- &a{level + 1} {{connected: true, serial: s{level}, platform: [{inner}]}}\n"
        content = text.encode(errors="replace")
        self.path.write_bytes(mutated_bytes(content, source) if source.random() < 0.5 else content)
        entries_for(self.board, self.path)
