"""Tokenizers of several kinds, trained on the documentation of this repository."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer, UnigramTrainer

from mcudeploy.extensions.text.tokenizer_file import GPT2

ROOT = Path(__file__).parents[2]
CORPUS = tuple((ROOT / "docs" / name).read_text("utf-8") for name in ("usage.md", "glossary.md"))
BYTES = [f"<0x{it:02X}>" for it in range(256)]
SPECIAL = ["<unk>", "<s>", "</s>"]


def _trained(tokenizer: Tokenizer, trainer: BpeTrainer | UnigramTrainer) -> Tokenizer:
    """Trained; bytes of byte fallback are not added tokens, as in published files."""
    trainer.show_progress = False
    tokenizer.train_from_iterator(CORPUS, trainer)
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = [it for it in content["added_tokens"] if it["content"] not in BYTES]
    return Tokenizer.from_str(json.dumps(content))


def byte_level(*, regex: bool = True, prefix: bool = False) -> Tokenizer:
    """As GPT-2's, with two kinds of added tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer = _trained(
        tokenizer, BpeTrainer(vocab_size=600, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"])
    )
    tokenizer.add_tokens([AddedToken(it, normalized=True) for it in ("    ", "  ", "xy<|e")])
    return tokenizer


def split_byte_level() -> Tokenizer:
    """With GPT-2's expression in a separate part, and words that need no merges."""
    tokenizer = byte_level()
    split = pre_tokenizers.Split(Regex(GPT2), "isolated")
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_])
    tokenizer.model.ignore_merges = True
    return tokenizer


def _begun(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A $B", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return tokenizer


def llama(*, fallback: bool = True) -> Tokenizer:
    """As Llama's: no pre-tokenizer, so that merges could join words; trained on words, though."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=fallback))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = SPECIAL + (BYTES if fallback else [])
    tokenizer = _trained(tokenizer, BpeTrainer(vocab_size=700, special_tokens=special))
    tokenizer.pre_tokenizer = None
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return _begun(tokenizer)


def converted() -> Tokenizer:
    """As converters write SentencePiece models: all pairs of pieces that make a piece, by its id."""
    content = json.loads(llama().to_str())
    vocab = content["model"]["vocab"]
    pairs = [
        (number, vocab[text[:at]], text[:at], text[at:])
        for text, number in vocab.items()
        for at in range(1, len(text))
        if text[:at] in vocab and text[at:] in vocab
    ]
    content["model"]["merges"] = [[left, right] for _, _, left, right in sorted(pairs)]
    return Tokenizer.from_str(json.dumps(content))


def metaspace(scheme: str, *, fuses: bool) -> Tokenizer:
    """BPE of characters by words."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuses))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    return _trained(tokenizer, BpeTrainer(vocab_size=500, special_tokens=SPECIAL))


def across_words() -> Tokenizer:
    """BPE whose merges join words."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    return _trained(tokenizer, BpeTrainer(vocab_size=500, special_tokens=SPECIAL, max_token_length=12))


@cache
def _scored() -> list[tuple[str, float]]:
    """The pieces of a Unigram model and their scores, after the special tokens."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = UnigramTrainer(vocab_size=400, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS[:1], trainer)
    return [(text, score) for text, score in json.loads(tokenizer.to_str())["model"]["vocab"]][len(SPECIAL) :]


def unigram(*, fallback: bool = False, split: bool = True) -> Tokenizer:
    """As SentencePiece's."""
    fixed = [(it, 0.0) for it in (*SPECIAL, *(BYTES if fallback else ()))]
    tokenizer = Tokenizer(models.Unigram([*fixed, *_scored()], 0, byte_fallback=fallback))
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=split)
    tokenizer.decoder = decoders.Metaspace()
    return _begun(tokenizer)


PRODUCERS = {
    "byte-level": byte_level,
    "byte-level-prefix": lambda: byte_level(prefix=True),
    "byte-level-whole": lambda: byte_level(regex=False),
    "byte-level-split": split_byte_level,
    "llama": llama,
    "llama-converted": converted,
    "llama-unknown": lambda: llama(fallback=False),
    "metaspace-first": lambda: metaspace("first", fuses=True),
    "metaspace-never": lambda: metaspace("never", fuses=False),
    "across-words": across_words,
    "unigram": unigram,
    "unigram-bytes": lambda: unigram(fallback=True),
    "unigram-whole": lambda: unigram(split=False),
}


@cache
def trained(name: str) -> Tokenizer:
    """A tokenizer of this kind."""
    return PRODUCERS[name]()
