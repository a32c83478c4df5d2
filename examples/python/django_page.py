# SPDX-License-Identifier: MIT
"""A whole page out of a cache, in Django: one rendering, however many ask.

STORE=redis://localhost python django_page.py runserver
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from shop import Shop

import stanchion

settings.configure(ROOT_URLCONF=__name__, SECRET_KEY="of an example", ALLOWED_HOSTS=["*"])

shop = Shop(os.environ.get("SHOP", "shop.db"))
client = stanchion.connect(os.environ.get("STORE", "memory://"))
pages = client.cache("pages", ttl="60s", soft_ttl="45s", codec="bytes")

View = Callable[..., HttpResponse]


def cached_page(view: View) -> View:
    """For pages that look the same to everybody. What a view raises reaches all who wait, and is not stored."""

    @functools.wraps(view)
    def page(request: HttpRequest, **arguments: object) -> HttpResponse:
        return HttpResponse(pages.get_or_load(request.get_full_path(), lambda: view(request, **arguments).content))

    return page


@cached_page
def show(request: HttpRequest, id: int) -> HttpResponse:
    product = shop.product(id)
    if product is None:
        raise Http404
    return HttpResponse(f"<h1>{product['name']}</h1>")


urlpatterns = [path("products/<int:id>", show)]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
