# SPDX-License-Identifier: MIT
"""The user cache: a database that is slow and counts who asks, before it a cache, and everybody at once.

The count is taken at the source, a sqlite file, so that it holds over processes, too. (The leader that is cancelled at
ten moments of a load is in test_cache.py.)
"""

import asyncio
import json
import multiprocessing
import os
import sqlite3
import time

import pytest
from conftest import Crowd

import stanchion

PROCESSES = 8


class Database:
    """Users in a file. A query takes a while and is counted."""

    def __init__(self, path, seconds):
        self.path = str(path)
        self.seconds = seconds

    def _run(self, text, *arguments):
        with sqlite3.connect(self.path, timeout=30) as connection:
            rows = connection.execute(text, arguments).fetchall()
        connection.close()
        return rows

    def create(self):
        self._run("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)")
        self._run("CREATE TABLE queries (id INTEGER)")
        self._run("INSERT INTO users VALUES (42, 'Ada')")
        return self

    def read_user(self, number):
        self._run("INSERT INTO queries VALUES (?)", number)
        time.sleep(self.seconds)
        rows = self._run("SELECT id, name FROM users WHERE id = ?", number)
        return {"id": rows[0][0], "name": rows[0][1]} if rows else None

    async def read_user_async(self, number):
        self._run("INSERT INTO queries VALUES (?)", number)
        await asyncio.sleep(self.seconds)
        rows = self._run("SELECT id, name FROM users WHERE id = ?", number)
        return {"id": rows[0][0], "name": rows[0][1]} if rows else None

    def queries(self):
        return self._run("SELECT count(*) FROM queries")[0][0]


ADA = {"id": 42, "name": "Ada"}


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "users.sqlite", 0.3).create()


def users(client):
    return client.cache("users", ttl="5m", soft_ttl="4m", absent_ttl="1m")


def get_user(client, database, number):
    return users(client).get_or_load(str(number), lambda: database.read_user(number))


def test_a_miss_asks_the_database_and_a_hit_does_not(client, database):
    assert get_user(client, database, 42) == ADA
    assert get_user(client, database, 42) == ADA
    assert database.queries() == 1


def test_an_absent_user_is_asked_for_once(client, database):
    crowd = Crowd(20, lambda: get_user(client, database, 7)).join()
    assert crowd.results == [None] * 20
    assert get_user(client, database, 7) is None
    assert database.queries() == 1


def test_a_hundred_threads_on_a_cold_key_are_one_query(client, database):
    assert Crowd(100, lambda: get_user(client, database, 42)).join().results == [ADA] * 100
    assert database.queries() == 1


def test_a_thousand_coroutines_on_a_cold_key_are_one_query(client, database):
    async def main():
        cache = users(client.aio)
        return await asyncio.gather(
            *[cache.get_or_load("42", lambda: database.read_user_async(42)) for _ in range(1000)]
        )

    assert asyncio.run(main()) == [ADA] * 1000
    assert database.queries() == 1


def break_user(client):
    """What an older release left behind: no JSON."""
    stanchion_json = stanchion.Codec(lambda value: b'{"id": 42, "na', lambda data: None, wire="json")
    client.cache("users", ttl="5m", soft_ttl="4m", absent_ttl="1m", codec=stanchion_json).set("42", "whatever")


def test_broken_json_is_one_query_for_a_hundred_threads(client, database):
    break_user(client)
    assert Crowd(100, lambda: get_user(client, database, 42)).join().results == [ADA] * 100
    assert database.queries() == 1
    assert users(client).get("42") == ADA


# ---- Over processes


def _ask(url, prefix, database, number, barrier, answers):
    with stanchion.connect(url, prefix=prefix) as client:
        client.ready(10)
        barrier.wait(60)
        answers.put(json.dumps(get_user(client, database, number)))


def over_processes(redis_url, prefix, database, number):
    """What each of 8 processes gets that ask together."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(PROCESSES), context.Queue()
    arguments = (redis_url, prefix, database, number, barrier, answers)
    processes = [context.Process(target=_ask, args=arguments) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    came = [json.loads(answers.get(timeout=90)) for _ in processes]
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    return came


@pytest.fixture
def prefix(tmp_path):
    return f"users{os.getpid()}-{abs(hash(str(tmp_path)))}"


def test_a_cold_key_is_one_query_for_eight_processes(redis_url, prefix, database):
    assert over_processes(redis_url, prefix, database, 42) == [ADA] * PROCESSES
    assert database.queries() == 1


def test_an_absent_user_is_one_query_for_eight_processes(redis_url, prefix, database):
    assert over_processes(redis_url, prefix, database, 7) == [None] * PROCESSES
    assert database.queries() == 1


def test_broken_json_is_one_query_for_eight_processes(redis_url, prefix, database):
    with stanchion.connect(redis_url, prefix=prefix) as client:
        break_user(client)
    assert over_processes(redis_url, prefix, database, 42) == [ADA] * PROCESSES
    assert database.queries() == 1
