"""The texts of a file as vectors by name: read in one pass, embedded a batch at a time, looked up where known.

Vectors stand in the order of their names. In that of the file they would tell answers, where it writes the chosen text
first, and vectors are public.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from client.sources.item_features import ItemFeatures
from client.sources.prompts import answer_to
from client.sources.reading import EMPTY, Records, Sink, text_of, whole_text
from studies.text.cache import Cache
from studies.text.model import Model, Vectors

BATCH = 1024  # texts at once
Key = tuple[str, str]  # names of an answer and of its prompt, "" where there is none


@dataclass(frozen=True, eq=False)
class Embedded:
    """Vectors of texts, (texts, dimensions) in the order of `keys`; `made` of them were not in the cache.

    `prompt` names the column of prompts, None where texts stand for themselves. `seconds` is what making took.
    """

    keys: tuple[Key, ...]
    values: Vectors = field(repr=False)
    prompt: str | None
    model: str
    made: int
    seconds: float

    def features(self, path: Path) -> ItemFeatures:
        """The same as features of items. `path` is named in errors."""
        names = [answer if self.prompt is None else answer_to(answer, prompt) for answer, prompt in self.keys]
        numbers = tuple(map(str, range(self.values.shape[1])))
        return ItemFeatures(path, tuple(names), numbers, self.values.astype(np.float64), self.prompt)


def embed(
    records: Records,
    columns: Sequence[str],
    prompt: str | None,
    model: Model,
    dimensions: int,
    cache: Cache | None = None,
    batch: int = BATCH,
    told: Callable[[int], None] = lambda texts: None,
) -> Embedded:
    """Embed every different text of some columns, each after its `prompt` and a line break where that is a column.

    `told` hears of texts that are done. Raises SourceError where a record holds no text.
    """
    maker = _Maker(model, dimensions, cache, batch, told)
    asked = ["", ""]  # the prompt of the present record: its name, and all of it

    def ask(value: Any) -> None:
        asked[:] = text_of(value) or EMPTY, spoken(value)

    def answer(value: Any) -> None:
        if value is not None:
            head = "" if prompt is None else f"{asked[1]}\n"
            maker.add((text_of(value) or EMPTY, asked[0]), head + spoken(value))

    sinks: dict[str, Sink] = {} if prompt is None else {prompt: ask}
    records.scan(sinks | dict.fromkeys(columns, answer))
    return maker.finished(prompt)


def spoken(value: Any) -> str:
    """What is embedded of a raw value: its text in form NFC without outer spaces; the messages of a conversation.

    >>> spoken([{"role": "user", "content": " Hi "}, {"role": "assistant", "content": "Hello."}])
    'Hi\\nHello.'
    """
    if isinstance(value, list):
        said = [part["content"] if "content" in part else part["value"] for part in value]
        return "\n".join(map(spoken, said))
    return whole_text(value)


class _Maker:
    """Takes texts, keeps those of one batch, and vectors of all."""

    def __init__(
        self, model: Model, dimensions: int, cache: Cache | None, batch: int, told: Callable[[int], None]
    ) -> None:
        self._model, self._dimensions, self._cache, self._batch, self._told = model, dimensions, cache, batch, told
        self._keys: dict[Key, None] = {}
        self._waiting: list[str] = []
        self._parts: list[Vectors] = []
        self._made, self._seconds = 0, 0.0

    def add(self, key: Key, text: str) -> None:
        """Take a text, once."""
        if key not in self._keys:
            self._keys[key] = None
            self._waiting.append(text)
            if len(self._waiting) == self._batch:
                self._embed()

    def finished(self, prompt: str | None) -> Embedded:
        """All of them, by name."""
        self._embed()
        keys = list(self._keys)
        order = sorted(range(len(keys)), key=keys.__getitem__)
        values = np.concatenate([np.empty((0, self._dimensions), np.float32), *self._parts])[order]
        ordered = tuple(keys[place] for place in order)
        return Embedded(ordered, values, prompt, self._model.name, self._made, self._seconds)

    def _embed(self) -> None:
        texts, self._waiting = self._waiting, []
        start, names = time.perf_counter(), [] if self._cache is None else [self._cache.key(text) for text in texts]
        known = {} if self._cache is None else self._cache.find(names)
        new = [place for place in range(len(texts)) if not names or names[place] not in known]
        values = np.empty((len(texts), self._dimensions), dtype=np.float32)
        for place, name in enumerate(names):
            if name in known:
                values[place] = known[name]
        values[new] = self._model.vectors([texts[place] for place in new], self._dimensions)
        if self._cache is not None:
            self._cache.keep({names[place]: values[place] for place in new})
        self._parts.append(values)
        self._made += len(new)
        self._seconds += time.perf_counter() - start
        self._told(len(texts))
