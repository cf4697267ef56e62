#!/usr/bin/env python3
"""Opens records of a replicated log, written only from docs/reference/replication-format.md.

    replication_reader.py RING FILE...    prints a line for each file: what the record says, or "refused"

RING is a file with the key ring. The parts of a record must come in their order.
"""
import json, sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from message_reader import check_vectors, xaes

MOST_BYTES, MOST_MESSAGES = 524288, 100000
OUTCOMES = ("acknowledged", "released", "released, not counted", "rejected", "lease ended")


def derive(key, info):
    return HKDF(hashes.SHA512(), 32, None, info).derive(key)


def cipher(key, purpose, nonce):
    return xaes(derive(key, b"datavault/replication/" + purpose), nonce)


def refuse_unless(holds):
    if not holds:
        raise ValueError


class Ring:
    def __init__(self, data):
        version, count = data[0], data[53]
        oldest = int.from_bytes(data[49:53], "big")
        refuse_unless(version == 1 and 1 <= count <= 64 and oldest > 0 and len(data) == 54 + 32 * count)
        self.shard = data[1:17]
        self.keys = {oldest + n: data[54 + 32 * n:86 + 32 * n] for n in range(count)}


class Fields:
    def __init__(self, data):
        self.data = data

    def raw(self, count):
        refuse_unless(count <= len(self.data))
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def number(self, count, signed=False):
        return int.from_bytes(self.raw(count), "big", signed=signed)

    def time(self):
        return self.number(8, signed=True)

    def place(self):
        number = self.number(8)
        refuse_unless(number < 1 << 63)
        return number

    def id(self):
        return self.raw(16).hex()

    def name(self):
        return self.id(), self.number(8)

    def origin(self):
        return self.name() + (self.number(4),)

    def text(self):
        return self.raw(self.number(2)).decode()

    def block(self):
        return self.raw(self.number(4))

    def flag(self):
        flag = self.number(1)
        refuse_unless(flag <= 1)
        return flag == 1

    def optional(self, read):
        return read() if self.flag() else None

    def list(self, read):
        return [read() for _ in range(self.number(4))]

    def end(self):
        refuse_unless(not self.data)


def content(data):
    fields = Fields(data)
    priority, due, expires = fields.number(1), fields.optional(fields.time), fields.optional(fields.time)
    refuse_unless(priority <= 9)
    encoded, headers = Fields(fields.block()), {}
    while encoded.data:
        name = encoded.text()
        refuse_unless(name and name not in headers)
        headers[name] = encoded.block().decode()
    return {"priority": priority, "due": due, "expires": expires, "headers": headers, "payload": fields.data.hex()}


def message(fields):
    channel, deduplication, ordering = fields.text(), fields.optional(fields.text), fields.optional(fields.text)
    found = content(fields.block())
    refuse_unless(channel and (ordering is None or found["priority"] == 4))
    return channel, deduplication, ordering, found


def commit(fields):
    count = fields.number(4)
    refuse_unless(count <= MOST_MESSAGES)
    return [message(fields) for _ in range(count)]


def settlement(fields):
    start = fields.text(), fields.origin(), fields.id(), fields.id()
    kind = fields.number(1)
    refuse_unless(kind < len(OUTCOMES))
    reason = fields.text() if kind in (1, 2, 3) else None
    return start + (OUTCOMES[kind], reason, fields.optional(fields.time))


def operation(fields):
    f = Fields(fields.block())
    kind = f.number(1)
    name, origins = f.text, lambda: f.list(f.origin)
    read = {
        1: lambda: (name(), name(), f.optional(lambda: f.number(4))),
        2: lambda: (name(), name()),
        3: lambda: (name(), name(), f.optional(origins)),
        4: lambda: (name(), name(), f.optional(origins)),
        5: lambda: (name(), f.flag(), f.flag()) + tuple(f.optional(f.place) for _ in range(3)),
        6: lambda: (name(), f.optional(f.place), f.optional(f.place), f.number(4)),
        7: lambda: (name(), f.optional(origins)),
        8: lambda: (name(), f.optional(f.place), f.number(4)),
        9: lambda: (name(),),
        10: lambda: (name(), f.place(), f.optional(f.place), f.number(4), f.list(f.place)),
        11: lambda: (name(), f.place(), f.list(f.place)),
        12: lambda: (f.place(),),
        13: lambda: (name(), name()),
    }
    refuse_unless(kind in read)
    found = read[kind]()
    # What no engine accepts: an empty name of a channel or consumer, and a cancellation without a list.
    refuse_unless(kind in (9, 10, 11, 12) or all(found[:2 if kind in (1, 2, 3, 4, 13) else 1]))
    refuse_unless(kind != 7 or found[1] is not None)
    f.end()
    return (kind,) + found


KINDS = {
    1: ("commit", commit),
    2: ("settlement", settlement),
    3: ("epoch", lambda f: (f.id(), f.optional(f.id), f.id())),
    4: ("heartbeat", lambda f: (f.id(), f.number(8))),
    5: ("report", lambda f: (f.id(), f.number(8), f.raw(32).hex(), f.number(4), f.number(4))),
    6: ("join", lambda f: (f.id(), f.optional(lambda: f.number(8)))),
    7: ("leave", lambda f: f.id()),
    8: ("trim", lambda f: f.number(8)),
    9: ("operation", operation),
    10: ("rows", lambda f: f.block().hex()),
    11: ("key switch", lambda f: f.number(4)),
    12: ("key drop", lambda f: f.number(4)),
    13: ("repair", lambda f: (f.time(), f.time())),
}


def seal(ring, author, number, key, nonce, part, version=1, shard=None, purpose=b"record", secret=None):
    header = bytes([version]) + author + number.to_bytes(8, "big") + key.to_bytes(4, "big")
    sealed = cipher(secret or ring.keys[key], purpose, nonce).encrypt(
        nonce[12:], part, (shard or ring.shard) + header)
    return header + nonce + sealed


def open_record(ring, record):
    refuse_unless(69 <= len(record) <= MOST_BYTES and record[0] == 1)
    header, nonce = record[:29], record[29:53]
    key = int.from_bytes(header[25:], "big")
    refuse_unless(key in ring.keys)
    return cipher(ring.keys[key], b"record", nonce).decrypt(nonce[12:], record[53:], ring.shard + header)


def read(ring, record, shares):
    """The name of a record, what it follows, and what it says; the share of a part that another one follows."""
    author, number = Fields(record[1:25]).name()
    part = Fields(open_record(ring, record))
    flags = part.number(1)
    refuse_unless(flags <= 3)
    follows = part.name() if flags & 2 else None
    share = shares.pop((author, number), b"") + part.data
    if flags & 1:
        shares[author, number + 1] = share
        return author, number, follows, "part", part.data.hex()
    fields = Fields(share)
    kind = fields.number(1)
    refuse_unless(kind in KINDS)
    time, (title, body) = fields.time(), KINDS[kind]
    found = body(fields)
    fields.end()
    return author, number, follows, title, time, found


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def main(ring, *paths):
    ring, shares = Ring(contents(ring)), {}
    for path in paths:
        try:
            print(json.dumps(read(ring, contents(path), shares)))
        except (ValueError, IndexError, InvalidTag):
            print("refused")


if __name__ == "__main__":
    check_vectors()
    main(*sys.argv[1:])
