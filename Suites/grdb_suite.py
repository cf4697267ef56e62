"""Runs GRDB's tests over plain and over sealed databases, and compares the results.

scripts/grdb-suite calls this, and documents it.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

SEALED_MAGIC = b"\x8eDV"
PLAIN_MAGIC = b"SQLite format 3\0"
LOG_MAGICS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
# Bytes 4 to 7 of a log are a version. SQLite itself refuses that of a sealed log.
SEALED_LOG = (3007001).to_bytes(4, "big")
PLAIN_LOG = (3007000).to_bytes(4, "big")

# The sealed runs, each with its environment. The first is what a program gets that knows nothing of the VFS. In the second
# the bytes are reserved after the opening of a connection, as SealedDatabase does it, and an empty file shows as empty.
SEALED_FORMS = {"sealed": {}, "reserved": {"SEALEDSUITE_SETS_RESERVE": "1"}}
# How often a test that fails sealed is repeated alone, over plain databases and then over sealed ones.
PLAIN_REPETITIONS = 10
SEALED_REPETITIONS = 3


class FileWatch:
    """Counts the databases and logs in a folder by their first bytes, until it is stopped.

    It looks every 50 ms, because the tests remove their files. It reads them in this process: to open and close
    a database in the process that has locked it would release the locks.
    """

    def __init__(self, folder):
        self.folder = folder
        self.found = {name: set() for name in ("sealed", "plain", "sealed log", "plain log")}
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopped.wait(0.05):
            self.look()
        self.look()

    def stop(self):
        self.stopped.set()
        self.thread.join()

    def look(self):
        for parent, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(parent, name)
                try:
                    with open(path, "rb") as file:
                        kind = self.kind(file.read(16))
                except OSError:
                    continue  # removed since os.walk
                if kind:
                    self.found[kind].add(path)

    @staticmethod
    def kind(start):
        """The kind of a file; None if it has no first page yet, and for other files."""
        if start.startswith(SEALED_MAGIC):
            return "sealed"
        if start == PLAIN_MAGIC:
            return "plain"
        if start[:4] in LOG_MAGICS:
            return {SEALED_LOG: "sealed log", PLAIN_LOG: "plain log"}.get(start[4:8])
        return None

    @property
    def summary(self):
        return ", ".join(f"{name}: {len(paths):,}" for name, paths in self.found.items())


class Run:
    """One run of the test program, and what it printed.

    `sealing` is the environment of a sealed run, None for a plain one.
    """

    def __init__(self, options, sealing, filters, log):
        self.sqlite_libraries = set()
        self.has_library = False
        self.start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "data", "")
            plain_list = os.path.join(folder, "plain")
            os.mkdir(data)
            environment = dict(os.environ, TMPDIR=data)
            if sealing is not None:
                environment.update(
                    sealing,
                    LD_PRELOAD=options.library,
                    SEALEDSUITE_PLAIN_FILES="1",
                    SEALEDSUITE_LOG=plain_list,
                    SEALEDSUITE_COUNTS="1",
                )
            watch = FileWatch(data)
            try:
                self.run(options, filters, log, environment)
            finally:
                watch.stop()
            self.files = watch
            self.opened_plain = set()
            if os.path.exists(plain_list):
                with open(plain_list, encoding="utf-8") as file:
                    self.opened_plain = set(file.read().splitlines())
        self.minutes = (time.monotonic() - self.start) / 60
        with open(log, encoding="utf-8", errors="replace") as file:
            self.read(file.read())

    def run(self, options, filters, log, environment):
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [options.tests] + filters,
                cwd=options.checkout,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            deadline = time.monotonic() + options.limit
            try:
                while process.poll() is None and time.monotonic() < deadline:
                    self.look_at_libraries(process.pid)
                    time.sleep(0.2)
            finally:
                process.kill()
                self.status = process.wait()

    def look_at_libraries(self, number):
        try:
            with open(f"/proc/{number}/maps", encoding="utf-8") as file:
                paths = {line.split(maxsplit=5)[5].strip() for line in file if line.count("/")}
        except OSError:
            return  # the process has ended
        self.sqlite_libraries |= {path for path in paths if "libsqlite3" in os.path.basename(path)}
        self.has_library |= any(os.path.basename(path) == "libsealedsuite.so" for path in paths)

    def read(self, text):
        self.results = {}
        pattern = r"Test Case '(\w+\.\w+)' (started|passed|failed|skipped)\b"
        for name, state in re.findall(pattern, text):
            self.results[name] = state
        self.failed = {name for name, state in self.results.items() if state == "failed"}
        self.executed = {name for name, state in self.results.items() if state in ("passed", "failed")}
        self.messages = {}
        for line in text.splitlines():
            found = re.search(r": error: (?:-\[)?(\w+\.\w+)\]? : (.*)", line)
            if found:
                self.messages.setdefault(found[1], found[2])
        counts = re.search(r"sealedsuite: databases opened sealed: (\d+), plain: (\d+)", text)
        self.opened_sealed = int(counts[1]) if counts else 0

    @property
    def early_end(self):
        """The test that ran when the program ended early; None for a regular end."""
        running = [name for name, state in self.results.items() if state == "started"]
        if not running and self.status in (0, 1) and self.results:
            return None
        end = f"signal {signal.Signals(-self.status).name}" if self.status < 0 else f"status {self.status}"
        return f"{', '.join(running) or 'no test'} ({end})"


class Comparison:
    """Compares sealed runs with one plain run."""

    def __init__(self, options, filters, listed):
        self.options = options
        self.filters = filters
        self.listed = listed
        self.unexpected = []
        self.expected_count = 0
        self.plain = Run(options, None, filters, f"{options.logs}-plain.log")
        self.describe("plain", self.plain)
        # This shows that the watch finds files in clear. A choice of few tests can end between two looks.
        if self.plain.files.found["sealed"] or not (filters or self.plain.files.found["plain"]):
            self.unexpected.append("plain: the databases were not found in clear")
        for name in sorted(self.plain.failed):
            print(f"fails plain: {name}: {self.plain.messages.get(name)}")

    def add(self, form, environment):
        run = Run(self.options, environment, self.filters, f"{self.options.logs}-{form}.log")
        self.describe(form, run)
        faults = self.faults(run) + self.differences(form, run, environment)
        self.unexpected += [f"{form}: {text}" for text in faults]

    def describe(self, form, run):
        counts = f"{len(run.executed):,} tests ran, {len(run.failed):,} failed, {run.minutes:.1f} minutes"
        print(f"{form}: {counts}; files in the tests' folder: {run.files.summary}", flush=True)
        if run.early_end:
            self.unexpected.append(f"{form}: the run ended early in {run.early_end}")

    def faults(self, run):
        """Signs that a sealed run was not sealed."""
        print(f"  databases opened sealed: {run.opened_sealed:,}")
        faults = []
        if not run.has_library:
            faults.append("libsealedsuite.so was not loaded")
        if len(run.sqlite_libraries) != 1:
            faults.append(f"not exactly one SQLite library: {sorted(run.sqlite_libraries)}")
        if run.opened_sealed == 0 or not (self.filters or run.files.found["sealed"]):
            faults.append("no database was sealed")
        for kind in ("plain", "plain log"):
            faults += [f"in clear: {path}" for path in sorted(run.files.found[kind])]
        shipped = shipped_files(self.options.checkout)
        for path in sorted(run.opened_plain):
            name = os.path.basename(path)
            if name in shipped and ".resources/" in path:
                print(f"  opened plain, because GRDB ships it: {name}")
            else:
                faults.append(f"opened plain: {path}")
        return faults

    def differences(self, form, run, environment):
        """The unexpected ones. Prints the others."""
        unexpected = [f"{name} does not run" for name in sorted(self.plain.executed - run.executed)]
        # A listed test concerns a file that shows a header before its first page is written.
        listed = self.listed if form == "sealed" else {}
        for name in sorted(run.failed - self.plain.failed):
            message = run.messages.get(name)
            if name in listed:
                self.expected_count += 1
                print(f"  expected: {name}: {message}\n    {listed[name]}")
                continue
            explanation = self.explanation(name, message, environment)
            if explanation:
                print(f"  {explanation}: {name}: {message}", flush=True)
            else:
                unexpected.append(f"{name} fails: {message}")
        for name in sorted(set(listed) - run.failed):
            if name in run.executed:
                unexpected.append(f"{name} is listed, but passes")
            elif not self.filters:
                unexpected.append(f"{name} is listed, but does not run")
        unexpected += [f"{name} is listed, but fails plain" for name in sorted(set(listed) & self.plain.failed)]
        return unexpected

    def explanation(self, name, message, environment):
        """The reason why a failure is not a difference; None if it is one."""
        for count in range(1, PLAIN_REPETITIONS + 1):
            if self.run_alone(name, None).messages.get(name) == message:
                return f"fails plain too, alone in repetition {count}"
        for _ in range(SEALED_REPETITIONS):
            if self.run_alone(name, environment).results.get(name) != "passed":
                return None
        return f"failed once, then passed alone {SEALED_REPETITIONS} times"

    def run_alone(self, name, environment):
        filters = ["GRDBTests." + name.replace(".", "/")]
        return Run(self.options, environment, filters, f"{self.options.logs}-again.log")


def expected_failures(path):
    """The listed tests, each with its reason."""
    listed = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("#") or not line.strip():
                continue
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 3 or not all(fields):
                sys.exit(f"grdb-suite: {path}:{number}: not test<TAB>class<TAB>reason")
            listed[f"{fields[1]}.{fields[0]}"] = fields[2]
    return listed


def seconds(limit):
    number, unit = re.fullmatch(r"(\d+)([smh]?)", limit).groups()
    return int(number) * {"": 1, "s": 1, "m": 60, "h": 3600}[unit]


def shipped_files(checkout):
    """The names of the files that GRDB ships."""
    names = subprocess.run(
        ["git", "-C", checkout, "ls-files", "-z"], check=True, capture_output=True, text=True
    ).stdout.split("\0")
    return {os.path.basename(name) for name in names}


def main():
    parser = argparse.ArgumentParser()
    for name in ("version", "checkout", "library", "tests", "expected", "logs"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--limit", type=seconds, required=True)
    parser.add_argument("filters", nargs="*")
    options = parser.parse_args()
    filters = [",".join("GRDBTests." + name for name in options.filters)] if options.filters else []
    listed = expected_failures(options.expected)

    comparison = Comparison(options, filters, listed)
    for form, environment in SEALED_FORMS.items():
        comparison.add(form, environment)
    for text in comparison.unexpected:
        print(f"unexpected: {text}")
    print(
        f"grdb-suite: GRDB {options.version}, {len(comparison.plain.results):,} tests, "
        f"differences {comparison.expected_count} expected, {len(comparison.unexpected)} unexpected"
    )
    sys.exit(1 if comparison.unexpected else 0)


main()
