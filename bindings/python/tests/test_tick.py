# SPDX-License-Identifier: MIT
"""Jobs that run once per slot, and ids that are claimed once."""

import asyncio
import datetime

import pytest

import stanchion


def test_a_slot_is_given_out_once(connect):
    here, elsewhere = connect(), connect()
    with here.tick("nightly", every="24h", offset="2h") as run:
        assert run
        assert run.slot.tzinfo is datetime.timezone.utc
        assert run.slot.hour == 2
        assert run.fence > 0
    with elsewhere.tick("nightly", every="24h", offset="2h") as run:
        assert not run
        assert run.reason == "taken"
        assert 0 < run.retry_after <= 24 * 3600
        with pytest.raises(RuntimeError, match="taken"):
            _ = run.slot


def test_the_next_slot_is_another(clocked):
    for _ in range(3):
        with clocked.tick("job", every=60) as run:
            assert run
        clocked.advance(60)


def test_a_run_that_fails_gives_its_slot_back(client):
    with pytest.raises(LookupError), client.tick("job", every="24h") as run:
        assert run
        raise LookupError
    with client.tick("job", every="24h") as run:
        assert run


def test_a_run_that_goes_on_makes_the_next_slot_skip(clocked):
    with clocked.tick("job", every=60, at_most=600) as run:
        assert run
        clocked.advance(60)
        with clocked.tick("job", every=60, at_most=600) as other:
            assert not other
            assert other.reason == "still_running"


def test_the_same_awaited(client):
    async def main():
        async with client.aio.tick("job", every="24h") as run:
            assert run
        async with client.aio.tick("job", every="24h") as run:
            assert run.reason == "taken"

        @client.aio.every("24h", name="decorated")
        async def job(x):
            return x + 1

        assert await job(1) == 2
        assert await job(1) is None
        assert await client.aio.once("message-1", ttl=60)
        assert not await client.aio.once("message-1", ttl=60)

    asyncio.run(main())


def test_a_decorated_job_runs_only_if_it_wins(connect):
    here, elsewhere = connect(), connect()
    runs = []

    def job(where):
        runs.append(where)
        return where

    assert here.every("24h", name="job")(job)("here") == "here"
    assert elsewhere.every("24h", name="job")(job)("elsewhere") is None
    assert runs == ["here"]
    with pytest.raises(TypeError):

        @here.every("24h")
        async def coroutine():
            pass


def test_an_id_is_claimed_once(connect):
    here, elsewhere = connect(), connect()
    assert here.once("message-1", ttl="1h")
    assert not elsewhere.once("message-1", ttl="1h")
    assert elsewhere.once("message-2", ttl="1h")


def test_options_are_checked(client):
    with pytest.raises(stanchion.InvalidArgument), client.tick("job", every=60, offset=120):
        pass
