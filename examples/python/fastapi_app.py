# SPDX-License-Identifier: MIT
"""A product page that many ask for at once, a nightly job that one process of the fleet runs, and counters.

STORE=redis://localhost uvicorn fastapi_app:app --workers 4
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Optional

import prometheus_client
from fastapi import FastAPI, HTTPException
from shop import Shop

import stanchion.aio
from stanchion.prometheus import Collector

shop = Shop(os.environ.get("SHOP", "shop.db"))
client = stanchion.aio.connect(os.environ.get("STORE", "memory://"))
products = client.cache("products", ttl="5m", soft_ttl="4m")
prometheus_client.REGISTRY.register(Collector({"shop": client}))


@products.cached("{id}")
async def read_product(id: int) -> Optional[dict[str, Any]]:
    return await asyncio.to_thread(shop.product, id)


async def nightly() -> None:
    """Every process asks, one of them works: at two o'clock, or as soon as one is there to do it."""
    while True:
        async with client.tick("report", every="24h", offset="2h") as run:
            if run:
                await asyncio.to_thread(shop.write_report, run.slot)
        await asyncio.sleep(run.retry_after or 1)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    job = asyncio.create_task(nightly())
    yield
    job.cancel()
    await client.close()


app = FastAPI(lifespan=lifespan)
app.mount("/metrics", prometheus_client.make_asgi_app())


@app.get("/products/{id}")
async def show(id: int) -> dict[str, Any]:
    product = await read_product(id)
    if product is None:  # that there is no such product is cached, too
        raise HTTPException(404)
    return product


@app.put("/products/{id}")
async def rename(id: int, name: str) -> None:
    await asyncio.to_thread(shop.rename, id, name)
    await read_product.invalidate(id)
