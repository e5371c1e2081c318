"""Calls everything that greenstalk has: python greenstalk_calls.py HOST PORT"""

import os
import sys
import time

import greenstalk

ADDRESS = (sys.argv[1], int(sys.argv[2]))


def connect(**settings):
    return greenstalk.Client(ADDRESS, **settings)


def refused(error, call, *arguments, **settings):
    try:
        answer = call(*arguments, **settings)
    except error:
        return
    raise AssertionError(f"{call.__name__}{arguments} gave {answer} and not {error.__name__}")


def a_job_is_put_and_reserved_and_deleted():
    with connect(use="emails", watch="emails") as client:
        number = client.put("grüße@example.com", priority=7, ttr=30)
        job = client.reserve(timeout=5)
        assert (job.id, job.body) == (number, "grüße@example.com")
        client.touch(job)
        client.delete(job)
        refused(greenstalk.NotFoundError, client.delete, number)
        refused(greenstalk.NotFoundError, client.peek, number)
        refused(greenstalk.TimedOutError, client.reserve, timeout=0)


def a_body_is_any_bytes_up_to_the_limit():
    with connect(encoding=None, use="binary", watch="binary") as client:
        for body in [b"", b"\r\n", bytes(range(256)), os.urandom(100_000), bytes(1 << 20)]:
            client.put(body)
            job = client.reserve(timeout=5)
            assert job.body == body, len(body)
            client.delete(job)
        refused(greenstalk.JobTooBigError, client.put, bytes((1 << 20) + 1))
        refused(TypeError, client.put, "a text")


def the_smallest_priority_comes_first_in_all_watched_tubes():
    with connect(watch=["static", "dynamic"]) as client:
        for tube, body, priority in [("static", "c", 3), ("dynamic", "a", 1), ("static", "b", 2), ("dynamic", "d", 3)]:
            client.use(tube)
            client.put(body, priority=priority)
        assert [client.reserve(timeout=5).body for _ in range(4)] == ["a", "b", "c", "d"]


def a_delay_is_kept():
    with connect(use="later", watch="later") as client:
        begun = time.monotonic()
        number = client.put("later", delay=1)
        assert client.stats_job(number)["state"] == "delayed"
        assert client.peek_delayed().id == number
        refused(greenstalk.NotFoundError, client.peek_ready)
        job = client.reserve(timeout=5)
        assert 1 <= time.monotonic() - begun < 2
        client.release(job, priority=3, delay=3600)
        assert client.stats_job(job)["delay"] == 3600
        client.kick_job(job)
        assert client.reserve_job(number).body == "later"
        client.release(job)
        assert client.peek_ready().id == number


def a_holder_is_warned():
    with connect(use="short", watch="short") as client:
        client.put("two seconds", ttr=2)
        job = client.reserve(timeout=0)
        refused(greenstalk.DeadlineSoonError, client.reserve)
        client.touch(job)
        refused(greenstalk.TimedOutError, client.reserve, timeout=0)
        with connect() as other:
            refused(greenstalk.NotFoundError, other.delete, job)
            refused(greenstalk.NotFoundError, other.reserve_job, job.id)


def the_buried_are_kicked_before_the_delayed():
    with connect(use="graves", watch="graves") as client:
        delayed = [client.put("delayed", delay=30), client.put("delayed", delay=45)]
        number = client.put("ready")
        client.bury(client.reserve(timeout=5), priority=5)
        assert client.peek_buried().id == number
        assert client.stats_job(number)["state"] == "buried"
        assert client.kick(10) == 1
        assert client.kick(10) == 2
        refused(greenstalk.NotFoundError, client.peek_buried)
        refused(greenstalk.NotFoundError, client.peek_delayed)
        refused(greenstalk.NotFoundError, client.kick_job, delayed[0])


def a_pause_ends_by_itself():
    with connect(use="resting", watch="resting") as client:
        client.put("")
        begun = time.monotonic()
        client.pause_tube("resting", 1)
        assert client.stats_tube("resting")["pause"] == 1
        refused(greenstalk.TimedOutError, client.reserve, timeout=0)
        client.reserve(timeout=5)
        assert time.monotonic() - begun >= 1
        refused(greenstalk.NotFoundError, client.pause_tube, "nowhere", 1)


def tubes_are_listed():
    with connect() as client:
        assert client.using() == "default"
        assert client.watching() == ["default"]
        client.use("used")
        assert client.watch("watched") == 2
        assert client.using() == "used"
        assert client.watching() == ["default", "watched"]
        assert {"default", "used", "watched"} <= set(client.tubes())
        assert client.ignore("default") == 1
        refused(greenstalk.NotIgnoredError, client.ignore, "watched")
        refused(greenstalk.BadFormatError, client.use, "-no")
        refused(greenstalk.UnknownCommandError, client._send_cmd, b"nonsense", b"")


def everything_is_counted():
    with connect(use="counted", watch="counted") as client:
        number = client.put("job")
        job = client.stats_job(number)
        assert list(job) == [
            "id", "tube", "state", "pri", "age", "delay", "ttr", "time-left",
            "file", "reserves", "timeouts", "releases", "buries", "kicks",
        ]
        assert (job["id"], job["tube"], job["state"]) == (number, "counted", "ready")
        assert (job["pri"], job["ttr"]) == (greenstalk.DEFAULT_PRIORITY, greenstalk.DEFAULT_TTR)
        tube = client.stats_tube("counted")
        assert (tube["name"], tube["current-jobs-ready"], tube["total-jobs"]) == ("counted", 1, 1)
        refused(greenstalk.NotFoundError, client.stats_tube, "nowhere")
        before, after = client.stats(), client.stats()
        assert after["cmd-stats"] == before["cmd-stats"] + 1
        assert after["max-job-size"] == 1 << 20
        assert {"pid", "version", "uptime", "id", "hostname", "os", "platform", "draining"} <= set(after)


for fact in [value for value in list(globals().values()) if callable(value) and value.__module__ == "__main__"]:
    if fact not in (connect, refused):
        fact()
        print(fact.__name__)
