#!/usr/bin/env python3
"""Writes the fixtures whose one fault needs the key, only from docs/reference/sealed-database-format.md.

usage: make.py    needs the package cryptography; creates missing files and changes no existing one

README.md describes each file. Everything that does not depend on the fault is correct: checksums are computed
again, and tags match. The code that opens and seals is in Tests/ReferenceReaders.
"""
import os, sqlite3, struct, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../Tests/ReferenceReaders"))
from forge import SealedForge, flipped  # noqa: E402
from sealed_database_reader import PAGE, checksum, open_database, read, u32  # noqa: E402

KEY = b"\x4b" * 32
SEED = 0x0DADA5EE
FRAME = 24 + PAGE


def with_last_frame(name, change, checksums=False):
    """`log-not-checkpointed`, whose last commit is one frame: 80 rows without it, 90 with it.

    `change` takes the decrypted frame header and the sealed page, and returns both. `checksums` says whether
    the checksum is then computed again.
    """
    database, log = (read(os.path.join(HERE, "log-not-checkpointed.db" + end)) for end in ("", "-wal"))
    sealed, offset = SealedForge(name, KEY, database[:16]), len(log) - FRAME
    header = sealed.open_frame_header(log[offset:offset + 24], offset)
    header, page = change(header, log[offset + 24:])
    if checksums:
        before = sealed.open_frame_header(log[offset - FRAME:offset - FRAME + 24], offset - FRAME)
        number = struct.unpack(">I", header[:4])[0]
        plain = sealed.open_page(1, number, page)
        big_endian = log[3] == 0x83
        header = header[:16] + struct.pack(">2I", *checksum(
            header[:8] + plain, big_endian, struct.unpack(">2I", before[16:24])))
    return {"": database, "-wal": log[:offset] + sealed.seal_frame_header(header, offset) + page}


def log_with(name, at):
    """`log-not-checkpointed` with one flipped bit in the log."""
    database, log = (read(os.path.join(HERE, "log-not-checkpointed.db" + end)) for end in ("", "-wal"))
    return {"": database, "-wal": flipped(log, at)}


def pages_after(statement):
    """The pages of `rows` before and after a statement."""
    before = open_database(os.path.join(HERE, "rows.db"), KEY)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plain.db")
        with open(path, "wb") as file:
            file.write(before)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(statement)
        connection.close()
        after = read(path)
    assert len(before) == len(after)
    return tuple({number + 1: data[number * PAGE:(number + 1) * PAGE]
                  for number in range(len(data) // PAGE)} for data in (before, after))


def hot_journal(name, statement, segments):
    """`rows` after a statement, with a journal that rolls it back.

    `segments` takes the numbers of the changed pages and returns the journal.
    """
    header = read(os.path.join(HERE, "rows.db"))[:16]
    before, after = pages_after(statement)
    changed = [number for number in before if before[number] != after[number]]
    sealed = SealedForge(name, KEY, header)
    database = sealed.seal_database(b"".join(after[number] for number in sorted(after)))
    return {"": database, "-journal": segments(sealed, before, changed)}


def records(pages, numbers, seed=SEED):
    return [(number, pages[number], seed) for number in numbers]


def one_segment(sealed, before, changed):
    return sealed.seal_segment(records(before, changed), len(before), SEED)


def two_segments(sealed, before, changed):
    assert len(changed) == 3, changed
    return (sealed.seal_segment(records(before, changed[:2]), len(before), SEED)
            + sealed.seal_segment(records(before, changed[2:]), len(before), SEED))


def record_of_an_earlier_journal(sealed, before, changed):
    """A journal that is not synchronized. After its own records it has an authentic record of an earlier one."""
    _, stale = pages_after("DELETE FROM t WHERE id > 57")
    other = [number for number in before if number not in changed and before[number] != stale[number]]
    assert len(other) == 1, other
    return sealed.seal_segment(
        records(before, changed) + records(stale, other, SEED ^ 1), len(before), SEED,
        is_synchronized=False)


FIXTURES = {
    "log-frame-first-salt": lambda name: with_last_frame(
        name, lambda header, page: (flipped(header, 11), page)),
    "log-frame-second-salt": lambda name: with_last_frame(
        name, lambda header, page: (flipped(header, 15), page)),
    "log-frame-checksum": lambda name: with_last_frame(
        name, lambda header, page: (flipped(header, 19), page)),
    "log-frame-tag": lambda name: with_last_frame(
        name, lambda header, page: (header, flipped(page, PAGE - 1))),
    "log-last-commit-open": lambda name: with_last_frame(
        name, lambda header, page: (header[:4] + u32(0) + header[8:], page), checksums=True),
    "log-header-checksum": lambda name: log_with(name, 31),
    "hot-journal-of-deletions": lambda name: hot_journal(
        name, "DELETE FROM t WHERE id > 40", one_segment),
    "hot-journal-of-two-segments": lambda name: hot_journal(
        name, "DELETE FROM t WHERE id < 4 OR id > 57", two_segments),
    "hot-journal-before-an-earlier-one": lambda name: hot_journal(
        name, "DELETE FROM t WHERE id < 4", record_of_an_earlier_journal),
}


def main():
    for name, make in FIXTURES.items():
        if os.path.exists(os.path.join(HERE, name + ".db")):
            continue
        for end, data in make(name).items():
            with open(os.path.join(HERE, name + ".db" + end), "wb") as file:
                file.write(data)


main()
