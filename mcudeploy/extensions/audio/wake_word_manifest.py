"""Reader of ESPHome's manifests of wake words, and the front end that a component's models share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from mcudeploy.common.errors import ConfigError, UsageError
from mcudeploy.common.files import read_regular
from mcudeploy.extensions.audio.file_writer import tflite_file
from mcudeploy.extensions.audio.front_ends import FrontEnd, micro_speech
from mcudeploy.extensions.audio.joining import contents_of_file
from mcudeploy.extensions.audio.wake_word import CHANNELS, WakeWord

_MOST_BYTES = 2**16
_RATE = 16_000
_FIRST_STEP_MS = 20
"""Milliseconds from row to row of models with a manifest of version 1, which does not state them."""

_FIRST_LANGUAGES = ["en"]
"""Languages of models with a manifest of version 1, as ESPHome assumes."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has control characters")
    return text


_Text = Annotated[str, Field(max_length=100), AfterValidator(_printable)]
_KNOWN_KEYS_ALONE = ConfigDict(extra="ignore", strict=True)


class _Micro(BaseModel):
    model_config = _KNOWN_KEYS_ALONE

    probability_cutoff: float = Field(gt=0, lt=1)
    sliding_window_size: int = Field(
        ge=1, le=255, validation_alias=AliasChoices("sliding_window_size", "sliding_window_average_size")
    )
    feature_step_size: int = Field(ge=1, le=30)


class _WakeWordManifest(BaseModel):
    model_config = _KNOWN_KEYS_ALONE

    wake_word: _Text = Field(min_length=1)
    trained_languages: list[_Text] = []
    model: Annotated[str, Field(max_length=1000), AfterValidator(_printable)] = ""
    micro: _Micro


def read_manifest(path: Path) -> WakeWord:
    """Return the wake word of a manifest of version 1 or 2.

    Raises ConfigError for a file that cannot be read, or is not such a manifest.
    """
    try:
        content: Any = json.loads(read_regular(path, _MOST_BYTES))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}. --manifest names ESPHome's manifest of the model"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("type") != "micro":
        raise ConfigError(f'{path} is not a manifest of a wake word of ESPHome: its "type" is not "micro"')
    version = content.get("version")
    if version not in (1, 2) or isinstance(version, bool):
        raise ConfigError(f'{path}: its "version" is {version!r}; 1 and 2 are supported')
    if version == 1:
        content.setdefault("trained_languages", _FIRST_LANGUAGES)
        if isinstance(content.get("micro"), dict):
            content["micro"].setdefault("feature_step_size", _FIRST_STEP_MS)
    try:
        manifest = _WakeWordManifest.model_validate(content)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise ConfigError(f"{path}: {place}: {fault['msg'].removeprefix('Value error, ')}") from error
    micro = manifest.micro
    return WakeWord(
        phrase=manifest.wake_word,
        cutoff=micro.probability_cutoff,
        window=micro.sliding_window_size,
        hop=micro.feature_step_size * _RATE // 1000,
        languages=tuple(manifest.trained_languages),
        model=manifest.model,
    )


def front_end(words: Mapping[Path, WakeWord], path: Path) -> Path:
    """Write ESPHome's front end of these models to `path`, and return that.

    Raises UsageError for models that are not wake words of ESPHome or need different front ends, and
    ModelError for unreadable files.
    """
    for model in words:
        _require_wake_word(model)
    (first, word), *others = words.items()
    for model, other in others:
        if other.hop != word.hop:
            raise UsageError(
                f"the models of a component share one front end, and {first.name} takes a row of features "
                f"every {word.hop * 1000 // _RATE} ms, {model.name} every {other.hop * 1000 // _RATE} ms "
                '("feature_step_size" of the manifests): export them apart'
            )
    path.write_bytes(tflite_file(micro_speech(FrontEnd(hop=word.hop), quantized=True, esphome=True)))
    return path


def _require_wake_word(model: Path) -> None:
    contents = contents_of_file(model)
    inputs, outputs = ([contents.tensors[at] for at in ios] for ios in (contents.inputs, contents.outputs))
    if (
        len(inputs) == len(outputs) == 1
        and (inputs[0].kind, inputs[0].shape[:1], inputs[0].shape[2:]) == ("INT8", (1,), (CHANNELS,))
        and outputs[0].kind in ("INT8", "UINT8")
        and outputs[0].elements == 1
    ):
        return
    taken, made = (", ".join(f"{it.kind} {list(it.shape)}" for it in ios) for ios in (inputs, outputs))
    raise UsageError(
        f"{model} is not a wake word of ESPHome: it makes {made} from {taken}, not one 8-bit "
        f"probability from INT8 [1, N, {CHANNELS}]. "
        "The front end is part of --for esphome: leave out --before"
    )
