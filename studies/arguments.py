"""The parser of the command line: a word that it does not know brings the one that was meant."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import Any

ALIKE = 0.66  # share of letters in common from which on two words are taken for each other


class Parser(argparse.ArgumentParser):
    """An argument parser that suggests the command, the choice or the option that comes nearest.

    An option that is unknown is named first, by the command that it was given to: it may be why another is missing.
    """

    def parse_known_args(  # type: ignore[override]  # argparse's own overloads tell namespaces apart: nobody here does
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """As argparse does, but for options that nobody knows: no command passes any on."""
        words = list(sys.argv[1:] if args is None else args)
        for name in () if self._subparsers else _options(words):
            if not any(known.startswith(name) for known in self._option_string_actions):
                self.error(f"unknown option {name}{hint(name, self._option_string_actions)}")
        return super().parse_known_args(words, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += hint(str(value), [str(choice) for choice in action.choices or ()])
            raise


def hint(word: str, known: Iterable[str]) -> str:
    """Which known word was meant, as the end of a message; "" where none is like it.

    >>> hint("--epsilom", ["--epsilon", "--delta"]), hint("--colour", ["--epsilon"])
    ('; did you mean --epsilon?', '')
    """
    near = get_close_matches(word, list(known), n=1, cutoff=ALIKE)
    return f"; did you mean {near[0]}?" if near else ""


def _options(words: Sequence[str]) -> list[str]:
    """Names of long options among the words of a command."""
    before = takewhile(lambda word: word != "--", words)
    return [word.partition("=")[0] for word in before if word.startswith("--")]
