# SPDX-License-Identifier: MIT
"""Key templates, "user:{id}": checked when a function is decorated, filled when it is called. What is filled in is
percent-escaped, so that no value reaches over the edge of its field."""

from __future__ import annotations

import inspect
import string
from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Any, Union
from urllib.parse import quote
from uuid import UUID

from ._values import Key


def render(value: object, field: str) -> str:
    """The text of one value inside a key."""
    if isinstance(value, Enum):
        return render(value.value, field)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, str):
        return quote(value, safe="")
    if isinstance(value, bytes):
        return quote(value, safe="")
    if isinstance(value, date):  # a datetime is one
        return quote(value.isoformat(), safe="")
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(
        f"{{{field}}} is {type(value).__name__}: a key is made of str, int, bool, UUID, date, bytes or Enum; "
        f"name an attribute, {{{field}.id}}, or give cached() a function that makes the key"
    )


class _Field:
    """{name} or {name.attribute...} of a function."""

    def __init__(self, text: str, parameter: inspect.Parameter, position: int, signature: inspect.Signature) -> None:
        self._text = text
        self._name, *self._attributes = text.split(".")
        self._position = position if parameter.kind is not inspect.Parameter.KEYWORD_ONLY else None
        self._default = parameter.default
        self._signature = signature

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        if self._position is not None and self._position < len(args):
            value = args[self._position]
        elif self._name in kwargs:
            value = kwargs[self._name]
        elif self._default is not inspect.Parameter.empty:
            value = self._default
        else:
            self._signature.bind(*args, **kwargs)  # raises what the call itself would
            raise TypeError(f"missing argument: {self._name!r}")
        for attribute in self._attributes:
            value = getattr(value, attribute)
        return render(value, self._text)


class KeyMaker:
    """Makes the key of a call of `function`."""

    def __init__(self, template: Union[str, Callable[..., Key]], function: Callable[..., Any]) -> None:
        self._parts: list[Union[str, _Field]] = []
        self._function = None if isinstance(template, str) else template
        if isinstance(template, str):
            self._parse(template, function)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Key:
        if self._function is not None:
            return self._function(*args, **kwargs)
        return "".join([part if isinstance(part, str) else part(args, kwargs) for part in self._parts])

    def _parse(self, template: str, function: Callable[..., Any]) -> None:
        name = getattr(function, "__qualname__", repr(function))
        signature = inspect.signature(function)
        positions = {parameter: at for at, parameter in enumerate(signature.parameters)}
        try:
            pieces = list(string.Formatter().parse(template))
        except ValueError as error:
            raise ValueError(f"the key template {template!r}: {error}") from None
        for literal, field, spec, conversion in pieces:
            if literal:
                self._parts.append(literal)
            if field is None:
                continue
            if spec or conversion or "[" in field:
                raise ValueError(
                    f"the key template {template!r}: {{{field}}} is a name or name.attribute, nothing more"
                )
            root = field.split(".")[0]
            if root == "":
                raise ValueError(f"the key template {template!r}: name the parameters of {name}, as in {{id}}")
            if root not in positions:
                known = ", ".join(positions) or "none"
                raise ValueError(f"the key template {template!r}: {name} has no parameter {root!r} (it has: {known})")
            if field in ("self", "cls"):
                raise ValueError(
                    f"the key template {template!r}: {{{field}}} has no text that other processes share; "
                    f"name what tells objects apart, as in {{{field}.id}}"
                )
            parameter = signature.parameters[root]
            if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                raise ValueError(f"the key template {template!r}: {{{field}}} stands for any number of arguments")
            self._parts.append(_Field(field, parameter, positions[root], signature))
        if not self._parts:
            raise ValueError("the key template is empty")
