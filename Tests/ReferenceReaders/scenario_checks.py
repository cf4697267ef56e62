"""The checks of a scenario that drives a server with a stock client, for the tests in Swift.

Each check prints one line: "ok WHAT" or "not ok WHAT: WHY".
"""
import os, sys, traceback

failures = 0


def check(what, condition, why=""):
    global failures
    failures += 0 if condition else 1
    print(f"ok {what}" if condition else f"not ok {what}: {why}", flush=True)


def equal(what, found, wanted):
    check(what, found == wanted, f"{found!r} instead of {wanted!r}")


def run(scenario):
    """Runs a function, whose failure is a failed check, and ends the process with 1 if a check failed."""
    try:
        scenario()
    except Exception as error:
        check(scenario.__name__, False, "".join(traceback.format_exception(error))[-1500:].replace("\n", " | "))
    sys.stdout.flush()
    # The clients' threads would wait for their connections.
    os._exit(1 if failures else 0)
