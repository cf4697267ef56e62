#!/usr/bin/env python3
"""Writes and reads SQLCipher 4 databases with SQLCipher itself (sqlcipher3-wheels, PyPI).

usage: sqlcipher_reader.py write FILE KEY [OPTION]...   makes a database of a few hundred pages
       sqlcipher_reader.py read FILE KEY                prints a summary of its contents, as JSON

KEY is passed unchanged to PRAGMA key: a passphrase, or x'...'. Options: full, incremental (auto_vacuum),
wal (closed in WAL mode), utf16, small (a few rows, for the fixtures), hot-wal (leaves a log).
"""
import hashlib
import json
import os
import sys

import sqlcipher3

SCHEMA = """
CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT, data BLOB, n REAL DEFAULT 1.5);
CREATE TABLE w (a TEXT, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE bare (x, y);
CREATE UNIQUE INDEX t_text ON t (text COLLATE NOCASE DESC);
CREATE VIEW few AS SELECT id, text FROM t WHERE id < 5;
CREATE TRIGGER touch AFTER INSERT ON bare BEGIN UPDATE t SET n = n + 1 WHERE id = 1; END;
CREATE VIRTUAL TABLE f USING fts5(body);
"""


def connect(path, key):
    connection = sqlcipher3.connect(path, isolation_level=None)
    connection.execute('PRAGMA key = "%s"' % key.replace('"', '""'))
    return connection


def write(path, key, options):
    connection = connect(path, key)
    for option in options:
        if option in ("full", "incremental"):
            connection.execute("PRAGMA auto_vacuum = " + option)
        if option == "utf16":
            connection.execute("PRAGMA encoding = 'UTF-16le'")
    if "wal" in options or "hot-wal" in options:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(SCHEMA)
    count = 12 if "small" in options else 2000
    connection.execute("BEGIN")
    for index in range(1, count + 1):
        data = hashlib.sha256(b"%d" % index).digest() * (1 + index % 40)
        connection.execute(
            "INSERT INTO t (text, data) VALUES (?, ?)", ("canary %d \u00e9\u4e16" % index, data))
        connection.execute("INSERT INTO w VALUES (?, ?)", ("k%d" % (index % 97), index))
        connection.execute("INSERT INTO f (body) VALUES (?)", ("word%d and canary" % index,))
    connection.execute("INSERT INTO bare (rowid, x, y) VALUES (77, 'x', 'y'), (500, 1, NULL)")
    if "small" not in options:
        connection.execute(
            "INSERT INTO t (text, data) VALUES ('big', ?)", (b"\x5a" * 3_000_000,))
    connection.execute("DELETE FROM t WHERE id % 7 = 0")
    connection.execute("COMMIT")
    connection.execute("PRAGMA user_version = 41")
    connection.execute("PRAGMA application_id = 16909060")
    if "hot-wal" in options:
        os._exit(0)  # without a close, which would empty the log
    connection.close()


def read(path, key):
    connection = connect(path, key)
    def value(sql):
        return connection.execute(sql).fetchone()[0]
    schema = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name")
    digest = hashlib.sha256()
    for table in ("t", "w", "bare"):
        columns = "rowid, *" if table != "w" else "*"
        for row in connection.execute("SELECT %s FROM %s ORDER BY 1, 2" % (columns, table)):
            digest.update(repr(row).encode())
    print(json.dumps({
        "schema": hashlib.sha256(repr(schema.fetchall()).encode()).hexdigest(),
        "rows": digest.hexdigest(),
        "count": value("SELECT count(*) FROM t"),
        "matches": value("SELECT count(*) FROM f WHERE f MATCH 'canary'"),
        "sequence": value("SELECT seq FROM sqlite_sequence WHERE name = 't'"),
        "integrity": value("PRAGMA integrity_check"),
        "cipherIntegrity": len(connection.execute("PRAGMA cipher_integrity_check").fetchall()),
        "encoding": value("PRAGMA encoding"),
        "autoVacuum": value("PRAGMA auto_vacuum"),
        "userVersion": value("PRAGMA user_version"),
        "applicationID": value("PRAGMA application_id"),
    }, sort_keys=True))


if sys.argv[1] == "write":
    write(sys.argv[2], sys.argv[3], sys.argv[4:])
elif sys.argv[1] == "read":
    read(sys.argv[2], sys.argv[3])
else:
    sys.exit(__doc__)
