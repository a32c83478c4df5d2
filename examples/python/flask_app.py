# SPDX-License-Identifier: MIT
"""The same page for threads, out of the same cache; the nightly job is a command, for the crontab of every host.

STORE=redis://localhost flask --app flask_app run
STORE=redis://localhost flask --app flask_app nightly
"""

from __future__ import annotations

import os
from typing import Any, Optional

from flask import Flask, abort, request
from shop import Shop

import stanchion

shop = Shop(os.environ.get("SHOP", "shop.db"))
client = stanchion.connect(os.environ.get("STORE", "memory://"))
products = client.cache("products", ttl="5m", soft_ttl="4m")
app = Flask(__name__)


@products.cached("{id}")
def read_product(id: int) -> Optional[dict[str, Any]]:
    return shop.product(id)


@app.get("/products/<int:id>")
def show(id: int) -> dict[str, Any]:
    return read_product(id) or abort(404)


@app.put("/products/<int:id>")
def rename(id: int) -> tuple[str, int]:
    shop.rename(id, request.args["name"])
    read_product.invalidate(id)
    return "", 204


@app.cli.command("nightly")
def nightly() -> None:
    with client.tick("report", every="24h", offset="2h") as run:
        if run:
            shop.write_report(run.slot)
    print("done" if run else f"not now: {run.reason}")
