# SPDX-License-Identifier: MIT
"""The decorator of a cache: a function whose answers are cached, as an object that can also invalidate and refresh."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar, Union, cast

from ._keys import KeyMaker
from ._values import Key

if sys.version_info >= (3, 10):
    from typing import ParamSpec
else:
    from typing_extensions import ParamSpec

if TYPE_CHECKING:
    from ._sync import Cache
    from .aio import Cache as AioCache

P = ParamSpec("P")
R = TypeVar("R")
Template = Union[str, Callable[..., Key]]
"""``"user:{id}"``, or a function of the same arguments that makes the key."""


class _Decorated:
    """What both kinds share. As an attribute of a class it binds like a function."""

    def __init__(self, cache: Any, function: Callable[..., Any], key: KeyMaker, how: dict[str, Any]) -> None:
        self._cache = cache
        self._function = function
        self._key = key
        self._how = how
        self._bound: tuple[Any, ...] = ()
        functools.update_wrapper(cast("Any", self), function)

    def __get__(self, instance: Optional[object], owner: Optional[type] = None) -> Any:
        if instance is None:
            return self
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._bound = (instance, *self._bound)
        return bound

    def __repr__(self) -> str:
        return f"<cached {self._function!r}>"

    def _key_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Key:
        return self._key(self._bound + args, kwargs)

    def _loader(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any]:
        return functools.partial(self._function, *self._bound, *args, **kwargs)


class CachedFunction(_Decorated, Generic[P, R]):
    """A function decorated with `Cache.cached`. Called, it gives the cached value, or runs. Since 0.1."""

    _cache: Cache

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self._cache.get_or_load(self._key_of(args, kwargs), self._loader(args, kwargs), **self._how)
        return result

    def refresh(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the function for these arguments and stores what it gives; others read the old value meanwhile."""
        result: R = self._cache.get_or_load(
            self._key_of(args, kwargs), self._loader(args, kwargs), **{**self._how, "force": True}
        )
        return result

    def invalidate(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Deletes the value for these arguments, as `Cache.invalidate`."""
        self._cache.invalidate(self._key_of(args, kwargs))

    def key(self, *args: P.args, **kwargs: P.kwargs) -> Key:
        """The key for these arguments."""
        return self._key_of(args, kwargs)


class CachedCoroutine(_Decorated, Generic[P, R]):
    """A coroutine function decorated with `Cache.cached`. Since 0.1."""

    _cache: AioCache

    def __init__(self, cache: AioCache, function: Callable[..., Any], key: KeyMaker, how: dict[str, Any]) -> None:
        super().__init__(cache, function, key, how)
        if sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(cast("Any", self))
        else:
            cast("Any", self)._is_coroutine = getattr(asyncio.coroutines, "_is_coroutine", None)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = await self._cache.get_or_load(self._key_of(args, kwargs), self._loader(args, kwargs), **self._how)
        return result

    async def refresh(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the function for these arguments and stores what it gives; others read the old value meanwhile."""
        result: R = await self._cache.get_or_load(
            self._key_of(args, kwargs), self._loader(args, kwargs), **{**self._how, "force": True}
        )
        return result

    async def invalidate(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Deletes the value for these arguments, as `Cache.invalidate`."""
        await self._cache.invalidate(self._key_of(args, kwargs))

    def key(self, *args: P.args, **kwargs: P.kwargs) -> Key:
        """The key for these arguments."""
        return self._key_of(args, kwargs)


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether a call of it is awaited."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
