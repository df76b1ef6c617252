"""What attempts failed of, as `yaq app status` says it: once, however many failed of it."""

from yaqd.cli.applications.job_details import error_lines

APPLICATION = "1700000000000_0001"


def failed(attempt: int, what: str) -> dict[str, str]:
    name = f"attempt_{APPLICATION}_m_000000_{attempt}"
    container = f"container_e01_{APPLICATION}_01_00000{attempt}"
    file = f"/c/nodes/nm-{attempt}/local/appcache/application_{APPLICATION}/{container}/bad.py"
    error = (
        f'{what}\n  in {name}, reading in/1\nTraceback (most recent call last):\n  File "{file}", line 4, in map\n    x'
    )
    return {"name": name, "node": f"host{attempt}:1", "error": error}


def test_attempts_that_failed_alike_are_one_line() -> None:
    division = "ZeroDivisionError: division by zero"
    errors = [*(failed(attempt, division) for attempt in range(3)), failed(3, "OSError: no room")]
    first, second = error_lines(errors, seen="")
    assert first.startswith(f"3 attempts failed alike, last {errors[2]['name']} on host2:1: {division} in ")
    assert second.startswith(f"{errors[3]['name']} on host3:1: OSError: no room in ")
    seen = f"map task 0 failed 4 times, last on host0:1: {failed(0, division)['error']}"
    assert error_lines(errors, seen) == [
        f"3 attempts failed alike, last {errors[2]['name']} on host2:1: as above",
        second,
    ]


def test_long_errors_are_compared_whole_and_shown_short() -> None:
    errors = [
        failed(attempt, "E: " + "a" * 600 + middle + "a" * 600) for attempt, middle in ((0, "x"), (1, "y"), (2, "x"))
    ]
    lines = error_lines(errors, "")
    assert len(lines) == 2 and all(len(line) < 700 for line in lines)
