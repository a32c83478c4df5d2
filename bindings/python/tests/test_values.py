# SPDX-License-Identifier: MIT
"""Durations, options, errors: what goes in and what comes out."""

import copy
import datetime
import math
import pickle

import pytest

import stanchion
from stanchion._durations import deadline_ms, to_ms
from stanchion._options import to_json


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        (1, 1000),
        (1.5, 1500),
        (0.29, 290),
        (0.0001, 1),
        (0, 0),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("1500ms", 1500),
        (datetime.timedelta(minutes=1, microseconds=1), 60_001),
    ],
)
def test_numbers_are_seconds_and_everything_is_rounded_up(value, ms):
    assert to_ms(value, "ttl") == ms


@pytest.mark.parametrize("value", [-1, -0.5, math.nan, math.inf, "5", "5 m", "", True, [1], 1e12, "11d1h1d"])
def test_what_is_no_duration_is_refused(value):
    with pytest.raises(stanchion.InvalidArgument):
        to_ms(value, "ttl")


def test_a_wait_may_have_no_limit():
    assert deadline_ms(None, "wait") == -1
    assert deadline_ms(math.inf, "wait") == deadline_ms("forever", "wait") == 2**63 - 1


def test_options_are_seconds_too():
    given = {"ttl": 1.5, "soft_ttl": datetime.timedelta(seconds=1), "lease": "auto", "jitter": 0.1, "wait": None}
    assert to_json(given) == '{"ttl_ms": 1500, "soft_ttl_ms": 1000, "lease": "auto", "jitter": 0.1}'


def test_absent_is_one_false_object():
    assert not stanchion.ABSENT
    assert copy.deepcopy(stanchion.ABSENT) is stanchion.ABSENT
    assert pickle.loads(pickle.dumps(stanchion.ABSENT)) is stanchion.ABSENT


def test_errors_are_one_tree_with_code_and_key():
    with pytest.raises(stanchion.Error) as caught:
        stanchion.connect("http://localhost")
    assert caught.value.code in ("unsupported", "invalid_argument")
    with stanchion.connect() as client, pytest.raises(stanchion.TooLarge) as caught:
        client.cache("c", ttl=60).get("k" * 2000)
    assert caught.value.code == "too_large"


def test_a_password_is_never_shown():
    with pytest.raises(stanchion.Error) as caught, stanchion.connect("redis://me:secret@127.0.0.1:1") as client:
        client.ready(2)
    assert caught.value.code == "unavailable"
    assert isinstance(caught.value, ConnectionError)
    assert "secret" not in str(caught.value)
    assert caught.value.retryable


def test_a_closed_client_says_so():
    client = stanchion.connect()
    cache = client.cache("c", ttl=60)
    client.close()
    client.close()
    with pytest.raises(stanchion.Closed):
        cache.get("key")
    with pytest.raises(stanchion.Closed):
        client.cache("c", ttl=60)
