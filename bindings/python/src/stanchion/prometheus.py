# SPDX-License-Identifier: MIT
"""Counters for Prometheus; needs ``pip install stanchion[prometheus]``.

    from prometheus_client import REGISTRY
    from stanchion.prometheus import Collector

    REGISTRY.register(Collector({"main": client}))

Each counter of `Client.stats` is there as ``stanchion_<name>_total{client}``, and each of `Cache.stats` as
``stanchion_cache_<name>_total{client, cache}``. They are read when Prometheus asks, and cost nothing between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Union

try:
    from prometheus_client.core import CounterMetricFamily
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "stanchion.prometheus needs prometheus_client: pip install stanchion[prometheus]"
    ) from error

from . import _native
from ._stats import CacheStats, Stats

if TYPE_CHECKING:
    from ._sync import Client
    from .aio import Client as AioClient

__all__ = ["Collector"]


class Collector:
    """A collector for any number of clients, by the names they have in the label ``client``. One is enough for a
    registry: to add or take away a client, register another. Since 0.1.
    """

    def __init__(self, clients: Mapping[str, Union[Client, AioClient]]) -> None:
        self._clients = {name: client._core for name, client in clients.items()}

    def describe(self) -> Iterator[CounterMetricFamily]:
        """The families without samples: what a registry looks at first."""
        for name in Stats.__annotations__:
            yield CounterMetricFamily(f"stanchion_{name}", _native.STATS[name], labels=["client"])
        for name in CacheStats.__annotations__:
            yield CounterMetricFamily(f"stanchion_cache_{name}", _native.STATS[name], labels=["client", "cache"])

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The counters as they are now."""
        samples: dict[str, list[tuple[list[str], int]]] = {}
        for client, core in self._clients.items():
            for name, value in core.counters().items():
                samples.setdefault(f"stanchion_{name}", []).append(([client], value))
            for cache, native in list(core.caches.items()):
                for name, value in core.cache_counters(native).items():
                    samples.setdefault(f"stanchion_cache_{name}", []).append(([client, cache], value))
        for family in self.describe():
            for labels, value in samples.get(family.name, ()):
                family.add_metric(labels, value)
            yield family
