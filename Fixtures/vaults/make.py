#!/usr/bin/env python3
"""Writes vaults with one fault with Tests/ReferenceReaders/forge.py, only from docs/reference/vault-format.md.

usage: make.py           creates missing files of negative/ and changes no existing one
       make.py FOLDER    creates the files that are too large to store in FOLDER; README.md has their SHA-256

needs the packages cryptography and joserfc
"""
import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../Tests/ReferenceReaders"))
from forge import VaultFileBuilder, flipped  # noqa: E402
from vault_reader import POLICY, compact, encode  # noqa: E402

PASSWORD = b"correct horse battery staple"
MEBIBYTE = 1 << 20
DATA_KEYS = encode(b"\xda" * 32)


def plaintext(items, data_keys=DATA_KEYS):
    """Makes the plaintext. `items` is JSON text, so that it can contain unnecessary escapes."""
    head = compact({"generation": 1, "passwordSetAt": 0, "policy": POLICY, "databases": None,
                    "dataKeys": data_keys})
    return (head[:-1] + ',"items":{' + items + "}}").encode()


def item(name, text):
    return '"%s":{"string":"%s"}' % (name, text)


def forge(name, items=item("name", "value"), data_keys=DATA_KEYS):
    return VaultFileBuilder(name, PASSWORD, plaintext(items, data_keys))


def with_tag_flipped(name, part):
    vault = forge(name)
    setattr(vault, "flips_%s_tag" % part, True)
    return vault.file()


def with_a_bit_of_the_digest(name):
    """A flipped bit in the digest's first character, because base64url ignores some bits of the last one."""
    file = forge(name).file()
    at = len(file) - 46
    return file[:at] + (b"B" if file[at:at + 1] == b"A" else b"A") + file[at + 1:]


def too_long_a_plaintext(name):
    """A plaintext of 32 MiB and a byte. Most of it are escapes, so that names and values are within their limits."""
    items = ",".join(item("k%d" % n, "\\u0061" * (900 << 10)) for n in range(6))
    missing = 32 * MEBIBYTE + 1 - len(plaintext(items)) - len(',"z":{"string":""}')
    return forge(name, items + "," + item("z", "v" * missing)).file()


NEGATIVES = {
    "key-tag-flipped": lambda name: with_tag_flipped(name, "key"),
    "contents-tag-flipped": lambda name: with_tag_flipped(name, "contents"),
    "digest-flipped": with_a_bit_of_the_digest,
    "Capital-in-the-id": lambda name: forge(name).file(),
    "_underscore-first-in-the-id": lambda name: forge(name).file(),
    "id-of-65-characters-".ljust(65, "x"): lambda name: forge(name).file(),
}

LARGE = {
    "item-too-large": lambda name: forge(name, item("a", "v" * (MEBIBYTE + 1))).file(),
    "items-too-large-together": lambda name: forge(name, ",".join(
        item("k%02d" % n, "v" * (MEBIBYTE - 3)) for n in range(16)) + "," + item("z", "")).file(),
    "plaintext-too-large": too_long_a_plaintext,
    "data-keys-too-many": lambda name: forge(name, data_keys=encode(b"\xda" * 32 * 4097)).file(),
}


def main(folder, files):
    for name, make in files.items():
        path = os.path.join(folder, name + ".vault")
        if not os.path.exists(path):
            with open(path, "wb") as file:
                file.write(make(name))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main(os.path.join(HERE, "negative"), NEGATIVES)
    else:
        main(sys.argv[1], LARGE)
