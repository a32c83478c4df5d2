# SPDX-License-Identifier: MIT
"""One step of a script: a line cut into words. What no verb wanted is found by `unused`."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional


class BadScript(Exception):
    """This is no step."""


_ESCAPE = re.compile(rb'\\(["\\n]|x[0-9a-f]{2})')
_TEXT = re.compile(rb'"((?:[^"\\]|\\["\\n]|\\x[0-9a-f]{2})*)"(?:\*([0-9]+))?')
_OPTION = re.compile(rb"([a-z_]+)=(.*)", re.DOTALL)


class Word:
    """A word, and whether a verb has taken it."""

    def __init__(self, text: bytes, quoted: bool) -> None:
        self.text = text
        self.quoted = quoted
        self.used = False

    def __str__(self) -> str:
        return self.text.decode("utf-8", "backslashreplace")

    def plain(self) -> Optional[str]:
        """The word, if it is not quoted."""
        return None if self.quoted else str(self)

    def option(self) -> Optional[str]:
        """The name in `name=value`."""
        found = None if self.quoted else _OPTION.fullmatch(self.text)
        return found[1].decode() if found else None


class _Cut(NamedTuple):
    word: Word
    end: int


def _unescape(found: re.Match[bytes]) -> bytes:
    what = found[1]
    if what.startswith(b"x"):
        return bytes([int(what[1:], 16)])
    return b"\n" if what == b"n" else what


def _quoted(line: bytes, at: int) -> _Cut:
    found = _TEXT.match(line, at)
    if not found:
        raise BadScript("a text that does not end, or an unknown escape")
    return _Cut(Word(_ESCAPE.sub(_unescape, found[1]) * int(found[2] or 1), True), found.end())


def _braced(line: bytes, at: int) -> _Cut:
    """{...} up to the brace that closes it; braces inside its texts do not count."""
    depth, end = 0, at
    while end < len(line):
        if line[end : end + 1] == b'"':
            end = _text_end(line, end)
            continue
        depth += {b"{": 1, b"}": -1}.get(line[end : end + 1], 0)
        end += 1
        if depth == 0:
            return _Cut(Word(line[at:end], False), end)
    raise BadScript("a brace that is not closed")


def _text_end(line: bytes, at: int) -> int:
    found = re.compile(rb'"(?:[^"\\]|\\.)*"').match(line, at)
    if not found:
        raise BadScript("a brace that is not closed")
    return found.end()


def _bare(line: bytes, at: int) -> _Cut:
    end = line.find(b" ", at)
    end = len(line) if end < 0 else end
    return _Cut(Word(line[at:end], False), end)


class Step:
    """A line of a script."""

    def __init__(self, number: int, line: bytes) -> None:
        self.number = number
        self.source = line.decode("utf-8", "backslashreplace")
        self.words: list[Word] = []
        self.promises: list[Word] = []
        into, at = self.words, 0
        while True:
            while line[at : at + 1] == b" ":
                at += 1
            start = line[at : at + 1]
            if start in (b"", b"#"):
                break
            word, at = {b'"': _quoted, b"{": _braced}.get(start, _bare)(line, at)
            if line[at : at + 1] not in (b"", b" "):
                raise BadScript("no blank after a word")
            if word.plain() == "->" and into is self.words:
                into = self.promises
            else:
                into.append(word)

    def _next(self, words: list[Word]) -> Optional[Word]:
        for word in words:
            if not word.used:
                return word
        return None

    def operand(self, what: str) -> Word:
        """The next word before the arrow."""
        word = self._next(self.words)
        if word is None:
            raise BadScript(f"missing {what}")
        word.used = True
        return word

    def optional(self) -> Optional[Word]:
        """The same, if it is there and no option."""
        word = self._next(self.words)
        if word is None or word.option():
            return None
        word.used = True
        return word

    def texts(self) -> Optional[Word]:
        """Any next word before the arrow."""
        word = self._next(self.words)
        if word is not None:
            word.used = True
        return word

    def promise(self) -> Optional[Word]:
        """The next word after the arrow."""
        word = self._next(self.promises)
        if word is not None:
            word.used = True
        return word

    def option(self, name: str) -> Optional[str]:
        """The value of `name=...`."""
        for word in self.words + self.promises:
            if not word.used and word.option() == name:
                word.used = True
                return str(word)[len(name) + 1 :]
        return None

    def flag(self, name: str) -> bool:
        """Does the bare word stand there?"""
        for word in self.words + self.promises:
            if not word.used and word.plain() == name:
                word.used = True
                return True
        return False

    def named(self) -> Optional[str]:
        """The name after `as`."""
        for word, after in zip(self.words, self.words[1:]):
            if not word.used and word.plain() == "as":
                word.used = after.used = True
                return str(after)
        return None

    def unused(self) -> Optional[Word]:
        """What nobody wanted."""
        return self._next(self.words + self.promises)
