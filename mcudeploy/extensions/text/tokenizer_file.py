"""The tokenizer of a `tokenizer.json` of Hugging Face: BPE of bytes or characters, and Unigram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import NoReturn

from mcudeploy.common.errors import ModelError
from mcudeploy.common.json_file import read_json
from mcudeploy.common.text import agree, first_repeated, printable
from mcudeploy.extensions.text.tokenizer_json import (
    MOST_BEFORE,
    MOST_IDS,
    MOST_PIECE_BYTES,
    AddedToken,
    FilePart,
    TokenizerFile,
    parts_of,
)

_SPACE = "\u2581"
_UNKNOWN_PENALTY = 10.0
"""How much lower than the least piece an unknown character scores, as in SentencePiece."""
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_DECODERS = frozenset({"ByteLevel", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"})
_END_NAMES = frozenset(
    {"</s>", "<|endoftext|>", "<eos>", "[EOS]", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|end|>"}
)
"""Special tokens that end a text in published models; a file does not state which of its tokens do."""


class Prefix(IntEnum):
    """Where a space goes before a part of the text; as `enum mcud_prefix`."""

    NONE, ALL, UNLESS_SPACE, FIRST = range(4)


class WordSplit(IntEnum):
    """How text is divided into words; as `enum mcud_split`."""

    NONE, SPACES, RUNS, GPT2 = range(4)


@dataclass(frozen=True, slots=True)
class Merge:
    """A pair of pieces that becomes one: the number of bytes of its left part, and its rank in the file."""

    left: int
    rank: int


@dataclass(frozen=True, slots=True)
class WordRules:
    """How text becomes words. `of_bytes`: symbols are bytes; else characters, and U+2581 is a space."""

    of_bytes: bool
    prefix: Prefix
    split: WordSplit


@dataclass(frozen=True, slots=True, eq=False)
class Tokenizer:
    """The pieces and rules of a tokenizer. `pieces`: the bytes of each id, b"" for an id without a token.

    `word_ids`: the ids into which words are divided. `merges`: for BPE, by resulting id. `scores`: for
    Unigram, of the first ids. `verbatim` and `added`: ids of tokens that text may contain by name, the
    longest first; verbatim ones are searched before the others. `before`: ids at the beginning of a text.
    `ends`: ids that end a generated text.
    """

    pieces: Sequence[bytes]
    words: WordRules
    word_ids: Sequence[int]
    merges: Mapping[int, Sequence[Merge]]
    scores: Sequence[float]
    unknown: int | None
    first_byte: int | None
    fuses_unknown: bool
    whole_words: bool
    verbatim: Sequence[int]
    added: Sequence[int]
    special: frozenset[int]
    before: Sequence[int]
    ends: Sequence[int]

    @property
    def unknown_score(self) -> float:
        """The score of a character without a piece."""
        return min(self.scores) - _UNKNOWN_PENALTY if self.scores else 0.0


def read_tokenizer(path: Path, ends: Sequence[str] = ()) -> Tokenizer:
    """Read a tokenizer. `ends`: the tokens that end a text, by default the special ones known for it.

    Raises ConfigError for a file that is not a tokenizer.json, ModelError for one that is not supported.
    """
    return _Reader(path, read_json(path, TokenizerFile, "a tokenizer.json of Hugging Face")).tokenizer(ends)


class _Reader:
    """Reads one file; all its errors begin with the path."""

    def __init__(self, path: Path, file: TokenizerFile) -> None:
        self._path, self._file, self._model = path, file, file.model

    def _fail(self, text: str) -> NoReturn:
        raise ModelError(f"{self._path}: {text}")

    def _require(self, holds: object, text: str) -> None:
        if not holds:
            self._fail(text)

    def tokenizer(self, ends: Sequence[str]) -> Tokenizer:
        """Return what the file describes. `ends`: names of the tokens that end a text."""
        model, kind = self._model, self._kind()
        rules, vocabulary = self._words(kind), self._vocabulary()
        ids = self._ids(vocabulary)
        byte_ids = self._byte_ids(ids) if model.byte_fallback else range(0)
        unknown = self._unknown(kind, ids, rules)
        pieces, word_ids = self._pieces(ids, vocabulary, rules, byte_ids)
        if kind == "Unigram":
            word_ids = [it for it in word_ids if it != unknown]
        merges = self._merges(ids, pieces, {unknown, *byte_ids}) if kind == "BPE" else {}
        scores = [score for _, score in model.vocab] if isinstance(model.vocab, list) else []
        added = self._added_tokens(byte_ids)
        return Tokenizer(
            pieces=pieces,
            words=self._with_runs(rules, [pieces[it] for it in word_ids], kind),
            word_ids=word_ids,
            merges=merges,
            scores=scores,
            unknown=unknown,
            first_byte=byte_ids.start if byte_ids else None,
            fuses_unknown=model.fuse_unk,
            whole_words=model.ignore_merges,
            verbatim=[it.id for it in added if not it.normalized],
            added=[it.id for it in added if it.normalized],
            special=frozenset(it.id for it in added if it.special),
            before=self._before(ids),
            ends=self._ends(ends, ids),
        )

    def _ids(self, vocabulary: Mapping[str, int]) -> dict[str, int]:
        """The id of each token, of the vocabulary and added: no two have the same."""
        ids = dict(vocabulary)
        for added in self._file.added_tokens:
            self._require(
                ids.setdefault(added.content, added.id) == added.id,
                f"added_tokens: {printable(added.content)!r} is {added.id}, in the vocabulary it is "
                f"{ids[added.content]}",
            )
        self._require(ids, "model.vocab is empty")
        twice = first_repeated(ids.values())
        self._require(twice is None, f"two tokens have the id {twice}")
        return ids

    def _pieces(
        self, ids: Mapping[str, int], vocabulary: Mapping[str, int], rules: WordRules, byte_ids: range
    ) -> tuple[list[bytes], list[int]]:
        """The bytes of each id, and the ids that words can become."""
        pieces, word_ids = [b""] * (max(ids.values()) + 1), list[int]()
        added = {it.id for it in self._file.added_tokens}
        for text, number in ids.items():
            is_byte = number in byte_ids
            usual = bytes([number - byte_ids.start]) if is_byte else text.encode()
            of_words = None if is_byte or text not in vocabulary else _bytes_in_words(text, rules)
            pieces[number] = usual if of_words is None or number in added else of_words
            if of_words and of_words == pieces[number]:
                word_ids.append(number)
            self._require(
                len(pieces[number]) <= MOST_PIECE_BYTES,
                f"the token {number} has {len(pieces[number]):,} bytes: at most {MOST_PIECE_BYTES} are "
                "supported. Train the tokenizer with a limit of their length",
            )
        if rules.of_bytes:
            missing = {bytes([it]) for it in range(256)} - {pieces[it] for it in word_ids}
            self._require(
                not missing,
                f"model.vocab lacks {len(missing)} of the 256 bytes. Train with "
                "initial_alphabet=pre_tokenizers.ByteLevel.alphabet()",
            )
        return pieces, word_ids

    def _kind(self) -> str:
        model = self._model
        kind = model.type or ("BPE" if model.merges is not None else "Unigram")
        if kind not in ("BPE", "Unigram"):
            self._fail(
                f"model.type is {printable(kind)}: BPE and Unigram are supported. Train such a tokenizer "
                "for the model"
            )
        is_table = isinstance(model.vocab, dict)
        self._require(is_table == (kind == "BPE"), f"model.vocab is not that of a {kind} model")
        self._require(kind == "Unigram" or model.merges is not None, "model.merges is missing")
        for name in ("continuing_subword_prefix", "end_of_word_suffix", "dropout"):
            value = getattr(model, name)
            self._require(
                not value, f"model.{name} is {printable(str(value))}: it is not supported. Set it to null"
            )
        return kind

    def _vocabulary(self) -> Mapping[str, int]:
        """The id of each token of the model."""
        vocab = self._model.vocab
        if isinstance(vocab, dict):
            return vocab
        self._require(len(vocab) <= MOST_IDS, f"model.vocab has {len(vocab):,} pieces: at most {MOST_IDS:,}")
        twice = first_repeated(text for text, _ in vocab)
        self._require(twice is None, f"model.vocab has {printable(str(twice))!r} twice")
        return {text: number for number, (text, _) in enumerate(vocab)}

    def _unknown(self, kind: str, ids: Mapping[str, int], rules: WordRules) -> int | None:
        """The id of characters without a piece, which a model of characters needs."""
        model = self._model
        if kind == "Unigram":
            if model.unk_id is None or model.unk_id >= len(model.vocab):
                self._fail(
                    f"model.unk_id is {model.unk_id}: it has to be the number of a piece of model.vocab"
                )
            return model.unk_id
        if model.unk_token is None:
            self._require(
                model.byte_fallback or rules.of_bytes,
                "model has neither unk_token nor byte_fallback: characters would be lost. Set unk_token",
            )
            return None
        shown = printable(model.unk_token)
        self._require(model.unk_token in ids, f"model.unk_token {shown!r} is not in model.vocab")
        return ids[model.unk_token]

    def _byte_ids(self, ids: Mapping[str, int]) -> range:
        """The ids of the tokens <0x00> to <0xFF>."""
        numbers = {name: ids.get(name) for name in (f"<0x{it:02X}>" for it in range(256))}
        first = numbers["<0x00>"] or 0
        for number, (name, there) in enumerate(numbers.items(), first):
            self._require(
                number == there,
                f"model.byte_fallback needs tokens <0x00> to <0xFF> with ids in a row, {name} is "
                f"{'missing' if there is None else there}. Set byte_fallback to false, or train with them",
            )
        return range(first, first + 256)

    def _merges(
        self, ids: Mapping[str, int], pieces: Sequence[bytes], apart: set[int | None]
    ) -> dict[int, list[Merge]]:
        """The merges by the ids of their results. `apart`: ids that take no part in merges."""
        merges: dict[int, list[Merge]] = {}
        seen: set[tuple[int, int]] = set()
        for rank, pair in enumerate(self._model.merges or ()):
            parts = tuple(pair.split(" ")) if isinstance(pair, str) else pair
            label = f"model.merges[{rank}]"
            self._require(len(parts) == 2 and all(parts), f"{label} is not a pair of tokens")
            texts = (*parts, "".join(parts))
            self._require(
                all(it in ids for it in texts), f"{label}: a part or the result is not in model.vocab"
            )
            left, right, result = (ids[it] for it in texts)
            self._require(
                apart.isdisjoint((left, right)) and pieces[result] == pieces[left] + pieces[right],
                f"{label} merges the unknown token or bytes of byte_fallback: leave it out",
            )
            self._require((left, right) not in seen, f"{label} is there twice")
            seen.add((left, right))
            merges.setdefault(result, []).append(Merge(len(pieces[left]), rank))
        return merges

    def _words(self, kind: str) -> WordRules:
        """How the normalizer and the pre-tokenizer divide text."""
        for part in parts_of(self._file.decoder):
            known = ", ".join(sorted(_DECODERS))
            self._require(part.type in _DECODERS, f"decoder: {printable(part.type)} is not one of {known}")
        normal, before = parts_of(self._file.normalizer), parts_of(self._file.pre_tokenizer)
        kinds = [it.type for it in before]
        if kinds[-1:] == ["ByteLevel"] and not normal and kind == "BPE":
            return self._byte_words(before)
        if kinds == ["Metaspace"] and not normal:
            return self._space_words(before[0])
        forms = [(it.type, it.prepend or it.pattern, it.content) for it in normal]
        prepend, replace = ("Prepend", _SPACE, ""), ("Replace", {"String": " "}, _SPACE)
        if not before and forms in ([prepend, replace], [replace]):
            return WordRules(False, Prefix.ALL if len(forms) == 2 else Prefix.NONE, WordSplit.NONE)
        names = [printable(it.type) for it in (*normal, *before)]
        self._fail(
            f"the normalizer and pre_tokenizer {' + '.join(names) or 'null'} of a {kind} model "
            f"{agree(len(names), 'is', 'are')} not supported. There may be the pre_tokenizer Metaspace, or "
            "ByteLevel for BPE, without a normalizer; or the normalizers Prepend and Replace of U+2581 "
            "without a pre_tokenizer. Train or convert the tokenizer to one of these"
        )

    def _byte_words(self, before: Sequence[FilePart]) -> WordRules:
        *others, last = before
        splits = [(it.type, it.pattern, it.behavior, it.invert) for it in others]
        if splits and (splits != [("Split", {"Regex": GPT2}, "Isolated", False)] or last.use_regex):
            shown = " + ".join(printable(str(it.pattern or it.type)) for it in others)
            self._fail(
                f"pre_tokenizer: {shown} is not supported. The expression has to be that of GPT-2, as "
                "ByteLevel with use_regex has it. Train the tokenizer with it"
            )
        prefix = Prefix.UNLESS_SPACE if last.add_prefix_space else Prefix.NONE
        return WordRules(True, prefix, WordSplit.GPT2 if splits or last.use_regex else WordSplit.NONE)

    def _space_words(self, part: FilePart) -> WordRules:
        schemes = {"always": Prefix.UNLESS_SPACE, "first": Prefix.FIRST, "never": Prefix.NONE}
        scheme = part.prepend_scheme or ("always" if part.add_prefix_space else "never")
        mark = printable(part.replacement)
        self._require(mark == _SPACE, f"pre_tokenizer: Metaspace replaces spaces by {mark!r}, not U+2581")
        shown = f"pre_tokenizer: prepend_scheme {printable(scheme)}"
        self._require(scheme in schemes, f"{shown} is not {', '.join(schemes)}")
        return WordRules(False, schemes[scheme], WordSplit.SPACES if part.split else WordSplit.NONE)

    def _with_runs(self, rules: WordRules, pieces: Sequence[bytes], kind: str) -> WordRules:
        """The rules with words that end before spaces, if no piece has a space after another character."""
        joins = any(b" " in it.lstrip(b" ") for it in pieces)
        whole = rules.of_bytes or rules.split is not WordSplit.NONE or self._model.ignore_merges
        if kind != "BPE" or whole or joins or b" " not in pieces:
            return rules
        return replace(rules, split=WordSplit.RUNS)

    def _added_tokens(self, byte_ids: range) -> list[AddedToken]:
        """The added tokens, the longest first."""
        tokens = self._file.added_tokens
        for it in tokens:
            shown = f"added_tokens: {printable(it.content)!r}"
            self._require(it.id not in byte_ids, f"{shown} is a byte of byte_fallback. Remove it there")
            for name in ("single_word", "lstrip", "rstrip"):
                self._require(
                    not getattr(it, name),
                    f"{shown} has {name}, which is not supported. Set it to false, or remove the token",
                )
            self._require(
                not it.normalized or not parts_of(self._file.normalizer),
                f"{shown} is normalized, which a normalizer changes. Set normalized to false",
            )
        return sorted(tokens, key=lambda it: (-len(it.content.encode()), it.id))

    def _before(self, ids: Mapping[str, int]) -> list[int]:
        """The tokens that the post-processor puts before a text; tokens after a text are not used."""
        before: list[int] = []
        for part in parts_of(self._file.post_processor):
            if part.type == "ByteLevel":
                continue  # it changes offsets only
            shown = f"post_processor: {printable(part.type)}"
            self._require(
                part.type == "TemplateProcessing",
                f"{shown} is not supported. Write the tokens as a TemplateProcessing",
            )
            items = [(name, it.id) for item in part.single for name, it in item.items()]
            self._require(("Sequence", "A") in items, "post_processor: single has no Sequence A")
            for _, name in items[: items.index(("Sequence", "A"))]:
                if name not in part.special_tokens:
                    self._fail(f"post_processor: special_tokens lacks the ids of {printable(name)!r}")
                before += part.special_tokens[name].ids
        self._require(
            set(before) <= set(ids.values()) and len(before) <= MOST_BEFORE,
            f"post_processor: {before[:MOST_BEFORE]} are not at most {MOST_BEFORE} ids of the vocabulary",
        )
        return before

    def _ends(self, named: Sequence[str], ids: Mapping[str, int]) -> list[int]:
        """The ids of the named tokens, or else of the special ones that are known to end a text."""
        for name in named:
            self._require(
                name in ids,
                f"the tokenizer has no token {printable(name)!r}, which --stop-token names: write it as in "
                "the file",
            )
        usual = [it.content for it in self._file.added_tokens if it.special and it.content in _END_NAMES]
        return sorted({ids[name] for name in named or usual})


def _alphabet() -> dict[str, int]:
    """GPT-2's character for each byte: itself if it is printable, else one from 256 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [it for it in range(256) if it not in plain]
    return {chr(it): it for it in plain} | {chr(256 + place): it for place, it in enumerate(others)}


ALPHABET = _alphabet()


def _bytes_in_words(text: str, rules: WordRules) -> bytes | None:
    """The bytes of a token of the vocabulary in a word; None for a token that no word contains."""
    if rules.of_bytes:
        return _bytes_of_characters(text)
    return None if " " in text else text.replace(_SPACE, " ").encode()  # a space of a text is U+2581 here


def _bytes_of_characters(text: str) -> bytes | None:
    """The bytes that a token of GPT-2's characters stands for; None for another text."""
    numbers = [ALPHABET.get(it) for it in text]
    return None if None in numbers else bytes(it for it in numbers if it is not None)
