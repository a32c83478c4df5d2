# SPDX-License-Identifier: MIT
"""Options: what may be given where, for type checkers and readers. Names, ranges and defaults are the library's own
(stanchion.h), and so is the refusal of an unknown name, which tells the nearest known one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import timedelta
from typing import TypedDict

from ._durations import Duration, to_ms


class ClientOptions(TypedDict, total=False):
    """Options of `stanchion.connect`."""

    prefix: str
    command_timeout: Duration
    connect_timeout: Duration
    close_at_exit: Duration
    max_loads_down: int
    max_waiters: int
    tls_ca_file: str
    tls_cert_file: str
    tls_key_file: str
    tls_server_name: str


class PolicyOptions(TypedDict, total=False):
    """The policy of a cache, or a variant of it."""

    ttl: Duration
    soft_ttl: Duration
    absent_ttl: Duration
    error_ttl: Duration
    jitter: float
    early: float
    lease: Duration
    wait: Duration
    max_load: Duration
    max_value: int
    coalesce: bool
    fleet: bool


class CacheOptions(PolicyOptions, total=False):
    """Options of `Client.cache`, but for ``codec`` and ``none_is_value``."""

    version: int
    max_loads: int


class LockOptions(TypedDict, total=False):
    """Options of `Client.lock`, but for ``ttl``."""

    wait: Duration
    renew: bool
    max_hold: Duration
    label: str
    key: str


# Where a bare number means seconds.
_SECONDS = frozenset(
    (
        "command_timeout",
        "connect_timeout",
        "close_at_exit",
        "ttl",
        "soft_ttl",
        "absent_ttl",
        "error_ttl",
        "lease",
        "wait",
        "max_load",
        "max_hold",
        "every",
        "offset",
        "at_most",
    )
)


def to_json(options: Mapping[str, object]) -> str:
    """The JSON text of options; None is an option that was not given."""
    out: dict[str, object] = {}
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, timedelta):
            out[name + "_ms"] = to_ms(value, name)
        elif name in _SECONDS and isinstance(value, (int, float)) and not isinstance(value, bool):
            if value == math.inf:
                out[name] = "forever"
            else:
                out[name + "_ms"] = to_ms(value, name)
        else:
            out[name] = value
    return json.dumps(out)
