"""What the story prints, and how it fails."""
import time


class Failure(Exception):
    """Something that the story promises is not so."""


def require(condition, what):
    if not condition:
        raise Failure(what)


def wait(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        require(time.monotonic() < deadline, what() if callable(what) else what)
        time.sleep(0.02)


def step(text):
    print(f"\n{text}", flush=True)


def say(text):
    print(f"  {text}", flush=True)
