#!/usr/bin/env python3
"""Burdens a message server, and prints what came of it as one JSON object.

    server_load.py silent ORIGIN COUNT                      opens connections that never send a whole request
    server_load.py flood ORIGIN PUB SUB QUIET_PUB QUIET_SUB floods with one application, publishes calmly with another

The server of `silent` takes one connection more than COUNT.
"""
import http.client, json, selectors, socket, sys, time

mode, origin = sys.argv[1:3]
host, port = origin.rsplit(":", 1)
LIMIT = 240


def connect():
    return socket.create_connection((host, int(port)), timeout=LIMIT)


def ended(connection):
    """Whether the server has closed a connection without an answer."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def time_status(client):
    client.request("GET", "/time/0")
    answer = client.getresponse()
    answer.read()
    return answer.status


def silent(count):
    starts = [b"", b"GET /time", b"GET /time/0 HTTP/1.1\r\nHost: a\r\nX-Half"]
    normal = http.client.HTTPConnection(host, int(port), timeout=LIMIT)
    served = [time_status(normal)]
    connections = []
    for number in range(count):
        connection = connect()
        connection.sendall(starts[number % len(starts)])
        connections.append(connection)
        if number % 100 == 0:
            served.append(time_status(normal))
    one_too_many = ended(connect())
    served += [time_status(normal) for _ in range(100)]
    closed = sum(ended(connection) for connection in connections)
    # There is room again.
    served.append(time_status(http.client.HTTPConnection(host, int(port), timeout=LIMIT)))
    return {"closed": closed, "oneTooMany": one_too_many, "refused": len(served) - served.count(200)}


class Publisher:
    """Publishes one message after another on a connection of its own, and counts the answers."""

    def __init__(self, publish_key, subscribe_key):
        self.socket = connect()
        self.request = (f"GET /publish/{publish_key}/{subscribe_key}/0/c/0/1 HTTP/1.1\r\nHost: a\r\n\r\n").encode()
        self.answer = b""

    def send(self):
        self.socket.sendall(self.request)

    def receive(self):
        """The status of an answer that is complete, or None; every answer has its length."""
        self.answer += self.socket.recv(65536)
        head, separator, body = self.answer.partition(b"\r\n\r\n")
        if not separator:
            return None
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(body) < length:
            return None
        self.answer = b""
        return int(head.split(b" ")[1])


def flood(publish_key, subscribe_key, quiet_publish_key, quiet_subscribe_key):
    quiet = Publisher(quiet_publish_key, quiet_subscribe_key)
    flooding = [Publisher(publish_key, subscribe_key) for _ in range(64)]
    # One loop takes the answers in the order of their arrival.
    selector = selectors.DefaultSelector()
    for publisher in [quiet] + flooding:
        selector.register(publisher.socket, selectors.EVENT_READ, publisher)
    for publisher in flooding:
        publisher.send()
    statuses, quiet_statuses, passed, before, refused, deadline = {}, [], [], None, [], time.monotonic() + LIMIT
    while len(quiet_statuses) < 20 and time.monotonic() < deadline:
        if before is None and statuses.get(200, 0) > 20:
            before = statuses[200]
            quiet.send()
        while refused and refused[0][0] < time.monotonic():
            refused.pop(0)[1].send()
        for key, _ in selector.select(0.01):
            status = key.data.receive()
            if status is None:
                continue
            if key.data is quiet:
                quiet_statuses.append(status)
                passed.append(statuses[200] - before)
                before = None
            else:
                statuses[status] = statuses.get(status, 0) + 1
                if status == 429:
                    # Much sooner than the server asks for, but not so often that this machine does nothing else.
                    refused.append((time.monotonic() + 0.01, key.data))
                else:
                    key.data.send()
    return {"acknowledged": statuses.pop(200, 0), "refused": statuses.pop(429, 0), "other": sorted(statuses),
            "quiet": quiet_statuses.count(200), "passed": max(passed, default=0)}


print(json.dumps(silent(int(sys.argv[3])) if mode == "silent" else flood(*sys.argv[3:])))
