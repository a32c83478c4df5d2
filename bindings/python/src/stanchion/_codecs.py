# SPDX-License-Identifier: MIT
"""How values become bytes. `wire` is the library's name of the format: it travels with the value, so that a program
with another codec treats it as a miss."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

from ._errors import InvalidArgument


@dataclass(frozen=True)
class Codec:
    """A pair of functions, and a name for messages. Its bytes are for programs with the same pair only.

    `encode` gives bytes and may raise: the load has failed then. `decode` may raise anything: the value is then loaded
    again, once for everybody, and overwritten. Since 0.1.
    """

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    name: str = "custom"
    wire: str = "private"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_decode_json = json.JSONDecoder(parse_constant=_refuse).decode


def _to_bytes(value: object) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"the codec 'bytes' takes bytes, not {type(value).__name__}")


def _to_text(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8")
    raise TypeError(f"the codec 'str' takes str, not {type(value).__name__}")


_KNOWN = {
    "bytes": Codec(_to_bytes, lambda data: data, "bytes", "raw"),
    "str": Codec(_to_text, lambda data: data.decode("utf-8"), "str", "raw"),
    "json": Codec(
        lambda value: _encode_json(value).encode("utf-8"),  # a lone surrogate is refused here
        lambda data: _decode_json(data.decode("utf-8")),
        "json",
        "json",
    ),
    "pickle": Codec(
        lambda value: pickle.dumps(value, protocol=4),  # what 3.9 and the newest read alike
        pickle.loads,
        "pickle",
        "private",
    ),
}

CodecLike = Union[str, Codec, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]]
"""``"json"``, ``"bytes"``, ``"str"``, ``"pickle"``, a `Codec`, or a pair (encode, decode)."""


def codec_of(what: CodecLike) -> Codec:
    """The codec that is meant."""
    if isinstance(what, Codec):
        return what
    if isinstance(what, str):
        if what not in _KNOWN:
            raise InvalidArgument(f"codec: {', '.join(_KNOWN)}, a Codec or a pair of functions, not {what!r}")
        return _KNOWN[what]
    encode, decode = what
    return Codec(encode, decode)
