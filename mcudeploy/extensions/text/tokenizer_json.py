"""The parts of a `tokenizer.json` of Hugging Face that mcudeploy reads, with their limits."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, FiniteFloat, StrictBool, StrictInt, StrictStr

MOST_IDS = 2**19
MOST_PIECE_BYTES = 255
MOST_ADDED = 4096
MOST_BEFORE = 8

_MOST_SCORE = 1e9
_Id = Annotated[StrictInt, Field(ge=0, lt=MOST_IDS)]
_Score = Annotated[FiniteFloat, Field(ge=-_MOST_SCORE, le=_MOST_SCORE)]
"""The device adds scores of a word as float32."""


class AddedToken(BaseModel):
    """A token that a text may name."""

    id: _Id
    content: Annotated[StrictStr, Field(min_length=1)]
    single_word: StrictBool = False
    lstrip: StrictBool = False
    rstrip: StrictBool = False
    normalized: StrictBool = True
    special: StrictBool = False


class TokenizerModel(BaseModel):
    """The vocabulary; `merges` are those of BPE, `unk_id` is that of Unigram."""

    type: StrictStr | None = None
    vocab: dict[StrictStr, _Id] | list[tuple[StrictStr, _Score]]
    merges: list[StrictStr | tuple[StrictStr, StrictStr]] | None = None
    unk_token: StrictStr | None = None
    unk_id: _Id | None = None
    dropout: float | None = None
    continuing_subword_prefix: StrictStr | None = None
    end_of_word_suffix: StrictStr | None = None
    fuse_unk: StrictBool = False
    byte_fallback: StrictBool = False
    ignore_merges: StrictBool = False


class _TemplateItem(BaseModel):
    id: StrictStr


class _TemplateIds(BaseModel):
    ids: Annotated[list[_Id], Field(max_length=MOST_BEFORE)]


class FilePart(BaseModel):
    """A normalizer, pre-tokenizer, post-processor or decoder, or a sequence of them."""

    type: StrictStr
    normalizers: list[FilePart] = []
    pretokenizers: list[FilePart] = []
    processors: list[FilePart] = []
    decoders: list[FilePart] = []
    pattern: dict[StrictStr, StrictStr] | None = None
    prepend: StrictStr = ""
    content: StrictStr = ""
    behavior: StrictStr = ""
    invert: StrictBool = False
    replacement: StrictStr = ""
    prepend_scheme: StrictStr | None = None
    add_prefix_space: StrictBool = True
    use_regex: StrictBool = True
    split: StrictBool = True
    single: list[dict[StrictStr, _TemplateItem]] = []
    special_tokens: dict[StrictStr, _TemplateIds] = {}


class TokenizerFile(BaseModel):
    """The file, without its parts `truncation` and `padding`."""

    model: TokenizerModel
    added_tokens: list[AddedToken] = Field(default=[], max_length=MOST_ADDED)
    normalizer: FilePart | None = None
    pre_tokenizer: FilePart | None = None
    post_processor: FilePart | None = None
    decoder: FilePart | None = None


def parts_of(part: FilePart | None) -> list[FilePart]:
    """Return the parts of a sequence, or the one part; [] for none. A sequence in a sequence is one part."""
    if part is None or part.type != "Sequence":
        return [] if part is None else [part]
    return [*part.normalizers, *part.pretokenizers, *part.processors, *part.decoders]
