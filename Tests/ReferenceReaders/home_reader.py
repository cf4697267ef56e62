#!/usr/bin/env python3
"""Opens the vault and the messages of a data directory, and prints the number of messages.

    home_reader.py open HOME PASSWORD_FILE

It is written only from the specifications in docs. It refuses a database that lacks the anchor of its vault, and
changes nothing in HOME.
"""
import os, sqlite3, sys, tempfile

import sealed_database_reader as database
import vault_reader as vault

ANCHOR = 24  # the number of a commit, big endian, and an id of 16 bytes
SCHEMA = 3


def open_home(home, password):
    clear, contents = vault.open_vault(
        database.read(os.path.join(home, "vaults/messaging.vault")), "password", password, b"")
    path = os.path.join(home, "messaging.db")
    file_id = vault.decode(clear["binding"]["database"])
    assert database.read(path)[8:16] == file_id, "the database belongs to another vault"
    keys = contents["databases"]
    plain = database.open_database(path, vault.decode(keys["current"]))
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "plain.db")
        with open(copy, "wb") as file:
            file.write(plain)
        connection = sqlite3.connect(copy)
        [(commit_number, anchors)] = connection.execute("SELECT commit_number, anchors FROM engine")
        [(message_count,)] = connection.execute("SELECT count(*) FROM message")
        [(version,)] = connection.execute("PRAGMA user_version")
        connection.close()
    assert version <= SCHEMA, "the database has a newer version"
    known = {
        anchors[at + 8:at + ANCHOR]: int.from_bytes(anchors[at:at + 8], "big")
        for at in range(0, len(anchors or b""), ANCHOR)}
    anchor = keys["anchor"]
    if anchor:
        assert vault.decode(anchor["id"]) in known, "rolled back: the anchor is unknown"
        number = known.get(vault.decode(anchor["id"]), anchor["commit"])
        assert number == anchor["commit"], "rolled back: the anchor belongs to another commit"
        assert commit_number >= anchor["commit"], "rolled back: the commit number is smaller than the anchor's"
    return message_count


def main():
    if len(sys.argv) != 4 or sys.argv[1] != "open":
        sys.exit(__doc__)
    print(open_home(sys.argv[2], database.read(sys.argv[3])))


if __name__ == "__main__":
    main()
