#!/usr/bin/env python3
"""Writes the fixtures of this folder, only from docs/reference/sealed-data-format.md. README.md describes them.

usage: make.py    needs the package cryptography; creates missing files and changes no existing one
"""
import os

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

HERE = os.path.dirname(os.path.abspath(__file__))
CHUNK = 65536
NEWEST, OLDER, FOREIGN = (bytes(range(start, start + 32)) for start in (0x20, 0x40, 0x60))
SALT = bytes(range(0xA0, 0xC0))
CONTEXT = b"context"


def derive(key, salt, info, length):
    return HKDF(hashes.SHA512(), length, salt or None, info).derive(key)


def header(key=NEWEST, start=b"DVD\1"):
    return start + derive(key, b"", b"datavault/data-id", 8) + SALT


def chunk(plaintext, index, mark, head=None, key=NEWEST, context=b""):
    derived = derive(key, head or header(key), b"datavault/data\0" + context, 32)
    return AESGCM(derived).encrypt(index.to_bytes(11, "big") + bytes([mark]), plaintext, None)


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


text = b"sealed by a vault"
short = header() + chunk(text, 0, 1)
full = bytes(n % 251 for n in range(CHUNK))
FILES = {
    "positive/empty": header() + chunk(b"", 0, 1),
    "positive/short": short,
    "positive/under-an-older-key": header(OLDER) + chunk(text, 0, 1, key=OLDER),
    "positive/with-a-context": header() + chunk(text, 0, 1, context=CONTEXT),
    "positive/two-chunks": header() + chunk(full, 0, 0) + chunk(b"end", 1, 1),
    "negative/cut-in-the-header": short[:43],
    "negative/cut-behind-the-header": short[:44],
    "negative/cut-in-the-tag": short[:-1],
    "negative/cut-between-chunks": header() + chunk(full, 0, 0),
    "negative/byte-behind-the-end": short + b"\0",
    "negative/another-magic": flipped(short, 0),
    "negative/newer-version": header(start=b"DVD\2") + chunk(text, 0, 1, header(start=b"DVD\2")),
    "negative/draft-version": header(start=b"DVD\0") + chunk(text, 0, 1, header(start=b"DVD\0")),
    "negative/key-of-another-vault": header(FOREIGN) + chunk(text, 0, 1, key=FOREIGN),
    "negative/salt-flipped": flipped(short, 12),
    "negative/ciphertext-flipped": flipped(short, 44),
    "negative/tag-flipped": flipped(short, len(short) - 1),
    "negative/of-another-context": header() + chunk(text, 0, 1, context=b"another"),
    "negative/index-one": header() + chunk(text, 1, 1),
    "negative/mark-two": header() + chunk(text, 0, 2),
    "negative/not-marked-as-last": header() + chunk(text, 0, 0),
    "negative/marked-as-last-in-the-middle": header() + chunk(full, 0, 1) + chunk(b"end", 1, 1),
    "negative/empty-chunk-behind-others": header() + chunk(full, 0, 0) + chunk(b"", 1, 1),
}

for name, data in FILES.items():
    path = os.path.join(HERE, name + ".sealed")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path):
        with open(path, "wb") as file:
            file.write(data)
