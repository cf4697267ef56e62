#!/usr/bin/env python3
"""Writes homes whose anchor has one fault, from `secured`. README.md describes them.

usage: make.py    needs the packages cryptography and joserfc; creates missing files and changes no existing one
"""
import json, os, sqlite3, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../Tests/ReferenceReaders"))
from forge import SealedForge, VaultFileBuilder, flipped  # noqa: E402
from sealed_database_reader import open_database, read  # noqa: E402
from vault_reader import compact, decode, encode  # noqa: E402

PASSWORD = b"correct horse battery staple"
DATABASE = os.path.join(HERE, "secured/messaging.db")
VAULT = os.path.join(HERE, "secured/vaults/messaging.vault")


def with_anchor(name, change):
    vault = VaultFileBuilder.opening(name, read(VAULT), PASSWORD)
    contents = json.loads(vault.plaintext)
    change(contents["databases"]["anchor"])
    vault.plaintext = compact({**contents, "generation": contents["generation"] + 1}).encode()
    return vault.file(), read(DATABASE)


def another_id(anchor):
    anchor["id"] = encode(flipped(decode(anchor["id"]), 0))


def earlier_commit(anchor):
    anchor["commit"] -= 1


def with_earlier_commit_number(name):
    """A database that has the anchor, but the commit number before it."""
    vault = VaultFileBuilder.opening(name, read(VAULT), PASSWORD)
    key = decode(json.loads(vault.plaintext)["databases"]["current"])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plain.db")
        with open(path, "wb") as file:
            file.write(open_database(DATABASE, key))
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("UPDATE engine SET commit_number = commit_number - 1")
        connection.close()
        plain = read(path)
    before = open_database(DATABASE, key)
    # Only pages that differ are sealed again, so that no other byte of the file changes.
    forge, sealed = SealedForge(name, key, read(DATABASE)[:16]), bytearray(read(DATABASE))
    for start in range(0, len(plain), 4096):
        if plain[start:start + 4096] != before[start:start + 4096]:
            number = start // 4096 + 1
            page = bytearray(plain[start:start + 4096])
            if number == 1:
                page[18:20] = b"\2\2"  # WAL mode, as before; the copy of the reference reader is not in WAL mode
            sealed[start:start + 4096] = forge.seal_page(1, number, bytes(page))
    return read(VAULT), bytes(sealed)


HOMES = {
    "anchor-id-unknown": lambda name: with_anchor(name, another_id),
    "anchor-commit-of-another": lambda name: with_anchor(name, earlier_commit),
    "commit-number-behind-the-anchor": with_earlier_commit_number,
}

for name, make in HOMES.items():
    folder = os.path.join(HERE, name)
    if not os.path.exists(folder):
        vault, database = make(name)
        os.makedirs(os.path.join(folder, "vaults"))
        for path, data in (("vaults/messaging.vault", vault), ("messaging.db", database)):
            with open(os.path.join(folder, path), "wb") as file:
                file.write(data)
