# SPDX-License-Identifier: MIT
"""Refuses a subinterpreter before the native module is loaded: up to Python 3.11 loading it there would never end."""

import importlib
from typing import Any


def _refuse() -> None:
    for name in ("_interpreters", "_xxsubinterpreters"):  # since 3.13; until 3.12
        try:
            interpreters: Any = importlib.import_module(name)
        except ImportError:
            continue
        if interpreters.get_current() != interpreters.get_main():
            raise ImportError(
                "stanchion works in the main interpreter only, not in a subinterpreter "
                "(mod_wsgi: WSGIApplicationGroup %{GLOBAL})"
            )
        return


_refuse()
