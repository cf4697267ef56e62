"""Runs the workloads of the benchmarks on another encrypting SQLite. It answers each JSON line with one.

Arguments: the module (sqlcipher3 or apsw), the cipher ("plain" for none), the folder.
"""

import json
import os
import sys
import time

module, cipher, folder = sys.argv[1:]
KEY = os.urandom(32).hex()
PAYLOAD = bytes(index * 7 % 256 for index in range(1024))
connections = {}
counters = {}


def connect(path):
    """Opens a database. The statement caches are large enough for every statement of a workload."""
    if module == "sqlcipher3":
        import sqlcipher3

        connection = sqlcipher3.connect(path, isolation_level=None, cached_statements=256)
        if cipher != "plain":
            connection.execute(f"PRAGMA key = \"x'{KEY}'\"")
    else:
        import apsw

        connection = apsw.Connection(path)
        if cipher != "plain":
            connection.execute(f"PRAGMA cipher = '{cipher}'")
            connection.execute(f"PRAGMA key = 'raw:{KEY}'")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def path_of(recipe):
    return os.path.join(folder, recipe["name"] + ".db")


def parameters(planned, first):
    """Makes the parameters of each run, before the clock starts."""
    random = 1
    rows = []
    for index in range(planned["count"]):
        random = (random * 6364136223846793005 + 1442695040888963407) % 2**64
        rows.append((first + index, (random >> 33) % planned["randomLimit"] + 1))
    return rows


def run(connection, planned, rows):
    cursor = connection.cursor()
    execute = cursor.execute
    per_transaction = planned.get("countPerTransaction")
    statements = [
        (sql, ":n" in sql, ":payload" in sql, ":random" in sql) for sql in planned["statements"]
    ]
    for index, (number, random) in enumerate(rows):
        if per_transaction and index % per_transaction == 0:
            execute("BEGIN")
        for sql, has_number, has_payload, has_random in statements:
            bound = {}
            if has_number:
                bound["n"] = number
            if has_payload:
                bound["payload"] = PAYLOAD
            if has_random:
                bound["random"] = random
            execute(sql, bound).fetchall()
        if per_transaction and (index + 1) % per_transaction == 0:
            execute("COMMIT")
    if per_transaction and len(rows) % per_transaction:
        execute("COMMIT")


def count(recipe, planned):
    first = counters.get(recipe["name"], 1)
    counters[recipe["name"]] = first + planned["count"]
    return parameters(planned, first)


def prepare(recipe):
    if recipe["name"] in connections:
        return
    connection = connect(path_of(recipe))
    for sql in ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = OFF"] + recipe["schema"]:
        connection.execute(sql).fetchall()
    if recipe.get("fill"):
        run(connection, recipe["fill"], count(recipe, recipe["fill"]))
    for sql in ["PRAGMA wal_checkpoint(TRUNCATE)"] + recipe["settings"]:
        connection.execute(sql).fetchall()
    connections[recipe["name"]] = connection


def reopen_cold(recipe):
    connections.pop(recipe["name"]).close()
    file = os.open(path_of(recipe), os.O_RDONLY)
    os.fdatasync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)
    connection = connect(path_of(recipe))
    for sql in recipe["settings"]:
        connection.execute(sql).fetchall()
    connections[recipe["name"]] = connection


def timed(body):
    wall, processor = time.perf_counter(), time.process_time()
    body()
    return {
        "wallSeconds": time.perf_counter() - wall,
        "processorSeconds": time.process_time() - processor,
    }


def open_and_close(recipe, planned):
    once = dict(planned, count=1)
    rows = parameters(once, 1)
    for _ in range(planned["count"]):
        connection = connect(path_of(recipe))
        run(connection, once, rows)
        connection.close()


def answer(request):
    recipe = request["recipe"]
    if request["operation"] == "prepare":
        prepare(recipe)
        return {}
    planned = request["pass"]
    if request["kind"] == "opening":
        return timed(lambda: open_and_close(recipe, planned))
    if request["kind"] == "coldPass":
        reopen_cold(recipe)
    rows = count(recipe, planned)
    connection = connections[recipe["name"]]
    return timed(lambda: run(connection, planned, rows))


for line in sys.stdin:
    try:
        result = answer(json.loads(line))
    except Exception as error:  # The other process reports it and stops.
        result = {"error": f"{module}, {cipher}: {error}"}
    print(json.dumps(result), flush=True)
