"""Runs SQLite's own TCL tests on plain and on sealed databases and compares the results.

Each test file runs in a separate process and folder. A case that fails on sealed databases and not on plain ones is a
difference. The list of expected differences gives each of them a class and a reason. scripts/sqlite-suite calls this.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

# Files outside SQLite's "quick" set that also run: faults, crashes, damage, logs and journals.
SLOW = "ioerr* malloc* *fault* *crash* corrupt* wal* pager* savepoint* journal*".split()
# About ten minutes: rollback, savepoints, the log, I/O errors and crashes.
CRASH_SHARE = """crash crash2 crash3 crash4 crash5 crash6 crash7 crash8 crashM ioerr ioerr2 ioerr3 ioerr4 ioerr5 ioerr6
    io journal1 journal2 journal3 jrnlmode jrnlmode2 jrnlmode3 rollback rollback2 rollbackfault savepoint savepoint2
    savepoint4 savepoint5 savepoint7 savepointfault sync sync2 wal wal2 wal3 wal4 wal5 wal6 wal8 wal9
    walbak walcksum walcrash walcrash2 walcrash3 walcrash4 walfault walfault2 walhook walmode walnoshm walpersist
    walprotocol walro walrofault walshared walslow pager1 pager2 pagerfault pagerfault2 pagerfault3""".split()

LIST_SCRIPT = """
set testdir [file join {%s} test]
set argv0 [file join $testdir list]
set argv {}
source $testdir/tester.tcl
source $testdir/permutations.test
foreach suite {quick full} {
  array unset options
  array set options $::testspec($suite)
  foreach file $options(-files) { puts "$suite [file join $testdir $file]" }
}
exit 0
"""


class Result:
    """The outcome of one test file."""

    def __init__(self, data):
        self.__dict__.update(data)

    @property
    def finished(self):
        return self.cases is not None

    @property
    def end(self):
        """The name of an end without a summary; None for a regular end."""
        if self.status == "timeout":
            return "timeout"
        if self.status < 0:
            return "killed by " + signal.Signals(-self.status).name
        return None if self.finished else "stopped"


def test_files(options):
    """The names of all files to run, by path."""
    script = os.path.join(options.work, "list.tcl")
    with open(script, "w") as file:
        file.write(LIST_SCRIPT % options.source)
    output = subprocess.run(
        [options.testfixture, script], cwd=options.work, env=environment(None), check=True,
        capture_output=True, text=True).stdout
    found = {}
    for line in output.splitlines():
        suite, _, path = line.partition(" ")
        name = os.path.basename(path).removesuffix(".test")
        if suite == "quick" or suite == "full" and any(fnmatch.fnmatch(name, p) for p in SLOW):
            found[os.path.normpath(path)] = name
    return found


def environment(options, temporary=None):
    """The environment of testfixture; sealed if there are options."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("SEALEDSUITE_")}
    if temporary:
        variables["SQLITE_TMPDIR"] = temporary
    if options:
        variables.update(
            SEALEDSUITE_LIBRARY=options.library, SEALEDSUITE_SETS_RESERVE="1",
            SEALEDSUITE_PLAIN_FILES="1")
    return variables


def run(options, path, name, form, limit):
    """Runs a test file. A plain run reuses the stored result of the same testfixture."""
    relative = os.path.relpath(path, options.source).replace("/", "-").removesuffix(".test")
    stored = os.path.join(options.work, form, relative + ".json")
    if (form == "plain" or options.resume) and os.path.exists(stored):
        with open(stored) as file:
            data = json.load(file)
        if data["build"] == options.builds[form]:
            return Result(data)
    folder = os.path.join(options.work, form, relative)
    # testfixture draws the same "random" names in each process, so two of them must not share a folder.
    temporary = folder + ".tmp"
    for each in (folder, temporary):
        shutil.rmtree(each, ignore_errors=True)
        os.makedirs(each)
    log = os.path.join(options.work, form, relative + ".log")
    start = time.monotonic()
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [options.testfixture, path], cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
            env=environment(options if form == "sealed" else None, temporary))
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = "timeout"
        try:
            os.killpg(process.pid, signal.SIGKILL)  # the group also holds what the test started
        except ProcessLookupError:
            pass
        process.wait()
    for each in (folder, temporary):
        shutil.rmtree(each, ignore_errors=True)
    data = parse(log)
    data.update(
        name=name, status=status, seconds=round(time.monotonic() - start, 1), build=options.builds[form], log=log)
    with open(stored, "w") as file:
        json.dump(data, file)
    return Result(data)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def parse(log):
    """Reads the output of testfixture."""
    names, failed, cases, errors = [], [], None, None
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    for index, line in enumerate(lines):
        if found := re.match(r"! (\S+) expected:", line):
            failed.append(found[1])
        elif line.startswith("!Failures on these tests: "):
            failed += line.split(": ", 1)[1].split()
        elif found := re.match(r"(\d+) errors out of (\d+) tests", line):
            errors, cases = int(found[1]), int(found[2])
        elif found := re.match(r"(\S+?)\.\.\.(.*)", line):
            names.append(found[1])
            if not found[2].endswith(" Ok") and index + 1 < len(lines) and lines[index + 1].startswith("Error: "):
                failed.append(found[1])
    return dict(names=sorted(set(names)), failed=sorted(set(failed)), cases=cases, errors=errors,
                last=names[-1] if names else "")


# The fewest cases of a loop.
LOOP = 5


def family(name):
    """The name of a loop's case without its counters."""
    return re.sub(r"(?<=\.)\d+", "#", name)


def differences(plain, sealed):
    """Returns the cases that pass on plain databases and not on sealed ones, each with what happened."""
    lengths = collections.Counter(family(name) for name in plain.names)
    known = collections.Counter(family(name) for name in plain.failed)
    counts = collections.Counter(family(name) for name in sealed.failed)
    found = {}
    for name in sealed.failed:
        # The same failure of a loop has another counter.
        is_known = lengths[family(name)] >= LOOP and counts[family(name)] <= known[family(name)]
        if name not in plain.failed and not is_known:
            found[name] = "failed"
    if sealed.end and sealed.end != plain.end:
        found[f"{sealed.name}:{sealed.end}"] = f"after {sealed.last}"
    elif not sealed.end and (not plain.finished or sealed.cases < plain.cases):
        # Some names hold random values; then as many cases ran. A loop over injected faults ends when none is left, so
        # its number of cases depends on the number of calls.
        ran = set(sealed.names)
        families = {family(name) for name in ran}
        for name in set(plain.names) - ran - set(plain.failed):
            if lengths[family(name)] < LOOP or family(name) not in families:
                found[name] = "did not run"
    return found


def holds(condition, version):
    """Whether a version meets a condition such as ">=3.46"; there is none for all versions."""
    if not condition:
        return True
    comparison, bound = re.fullmatch(r"(<|>=)([\d.]+)", condition).groups()
    ours, theirs = (tuple(map(int, v.split("."))) for v in (version, bound))
    return (ours < theirs) == (comparison == "<")


class Expected:
    """The list of expected differences."""

    def __init__(self, path, version):
        self.entries = {}
        self.limits = {}
        self.excluded = set()
        kind = detail = None
        with open(path) as file:
            for number, line in enumerate(file, 1):
                line = line.split("#", 1)[0].rstrip()
                if line and not line.startswith(" "):
                    head = re.match(r"([\w-]+\??)(?: (\S+))?: \S", line)
                    if not head:
                        sys.exit(f"{path}:{number}: a group needs a class and a reason")
                    kind, detail = head[1], head[2]
                elif line and not kind:
                    sys.exit(f"{path}:{number}: these names have no class and no reason")
                elif kind == "limit":
                    self.limits.update((name, int(detail)) for name in line.split())
                elif kind == "excluded":
                    self.excluded.update(line.split())
                elif holds(detail, version):
                    self.entries.update((name, kind) for name in line.split())
        self.globs = [name for name in self.entries if re.search(r"[*?]", name)]
        self.used = set()

    def find(self, name):
        """The class of a difference; None if it is not expected."""
        key = name if name in self.entries else next((g for g in self.globs if fnmatch.fnmatchcase(name, g)), None)
        if key is None:
            return None
        self.used.add(key)
        return self.entries[key]

    def unused(self, names):
        """The entries for names that ran and passed, except those that can pass."""
        for entry in self.entries.keys() - self.used:
            if self.entries[entry].endswith("?"):
                continue
            if entry in names or entry in self.globs and any(fnmatch.fnmatchcase(n, entry) for n in names):
                yield entry


def main():
    parser = argparse.ArgumentParser()
    for name in ("testfixture", "source", "library", "work", "expected", "version"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--share")
    parser.add_argument("--part")
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--resume", action="store_true", help="keep the sealed results of the same build, too")
    parser.add_argument("--differences", help="a file that gets all differences")
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    for form in ("plain", "sealed"):
        os.makedirs(os.path.join(options.work, form), exist_ok=True)
    program, library = (digest(path) for path in (options.testfixture, options.library))
    options.builds = {"plain": program, "sealed": program + library}
    expected = Expected(options.expected, options.version)

    files = sorted(test_files(options).items(), key=lambda item: (item[1], item[0]))
    if options.share == "crash":
        files = [item for item in files if item[1] in CRASH_SHARE]
    elif options.share:
        sys.exit(f"sqlite-suite: unknown share '{options.share}'\nhint: the only share is crash")
    if options.patterns:
        files = [f for f in files if any(fnmatch.fnmatchcase(f[1], p) for p in options.patterns)]
    if options.part:
        part, parts = map(int, options.part.split("/"))
        files = files[part - 1::parts]
    excluded = [item for item in files if item[1] in expected.excluded]
    files = [item for item in files if item[1] not in expected.excluded]
    if not files:
        sys.exit("sqlite-suite: no test file has such a name")

    def both(item):
        path, name = item
        limit = expected.limits.get(name, options.limit)
        plain = run(options, path, name, "plain", limit)
        return plain, None if plain.end == "timeout" else run(options, path, name, "sealed", limit)

    totals = dict(files=0, cases=0, expected=0, unexpected=0)
    classes, seconds, ran = {}, {"plain": 0, "sealed": 0}, set()
    table = open(options.differences, "w") if options.differences else None
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for plain, sealed in pool.map(both, files):
            if sealed is None:
                totals["unexpected"] += 1
                print(f"unexpected: {plain.name}: the plain run does not end, after {plain.last}", flush=True)
                continue
            totals["files"] += 1
            totals["cases"] += sealed.cases if sealed.finished else len(sealed.names)
            seconds["plain"] += plain.seconds
            seconds["sealed"] += sealed.seconds
            ran |= set(sealed.names)
            if plain.end:
                print(f"{plain.name}: plain run: {plain.end} after {plain.last}", flush=True)
            for name, word in sorted(differences(plain, sealed).items()):
                kind = expected.find(name)
                if table:
                    print(sealed.name, name, word.replace(" ", "_"), kind or "-", file=table, flush=True)
                if kind:
                    totals["expected"] += 1
                    classes[kind] = classes.get(kind, 0) + 1
                else:
                    totals["unexpected"] += 1
                    print(f"unexpected: {name} {word} ({sealed.log})", flush=True)
    for name in sorted(expected.unused(ran)):
        totals["unexpected"] += 1
        print(f"unexpected: {name} passed, but {options.expected} lists it", flush=True)
    for kind, count in sorted(classes.items()):
        print(f"expected, {kind}: {count:,}")
    for _, name in excluded:
        print(f"not run: {name}")
    print(f"seconds of all processes: plain {seconds['plain']:,.0f}, sealed {seconds['sealed']:,.0f}")
    print(f"sqlite-suite: SQLite {options.version}, {totals['files']:,} files, {totals['cases']:,} cases, differences "
          f"{totals['expected']:,} expected, {totals['unexpected']:,} unexpected")
    sys.exit(1 if totals["unexpected"] else 0)


if __name__ == "__main__":
    main()
