"""Runs litequeue, a queue on a plain SQLite file: each worker puts a message, takes one, and marks it done.

Arguments: the file, the number of workers, the number of rounds of each. Prints the seconds of wall time and
of processor time. `synchronous` is FULL, because our engine is durable too. All other settings are litequeue's.
"""

import sys
import threading
import time

from litequeue import LiteQueue

path, worker_count, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
PAYLOAD = "p" * 1024


def opened():
    queue = LiteQueue(path, timeout=60)
    queue.conn.execute("PRAGMA synchronous = FULL")
    return queue


def work(queue, failures):
    try:
        for _ in range(count):
            queue.put(PAYLOAD)
            queue.done(queue.pop().message_id)
    except Exception as error:
        failures.append(error)


queues = [opened() for _ in range(worker_count)]
failures = []
workers = [threading.Thread(target=work, args=(queue, failures)) for queue in queues]
wall, processor = time.perf_counter(), time.process_time()
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
wall, processor = time.perf_counter() - wall, time.process_time() - processor
if failures:
    raise failures[0]
print(wall, processor)
