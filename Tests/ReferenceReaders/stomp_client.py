#!/usr/bin/env python3
"""Drives a message server with stomp.py, the stock STOMP client for Python, unchanged.

    stomp_client.py SCENARIO HOST:PORT TRANSPORT VERSION [NAME=VALUE ...]

TRANSPORT is tcp, tls or ws, VERSION 1.0, 1.1 or 1.2; stomp.py speaks 1.2 over WebSocket. Names: app, pub, secret, ca, auth,
token. Prints one line for each check: "ok WHAT" or "not ok WHAT: WHY".
"""
import base64, socket, sys, threading, time

import stomp
import websocket
from stomp.adapter.ws import WSStompConnection

from scenario_checks import check, equal, run

host, port = sys.argv[2].rsplit(":", 1)
transport, version = sys.argv[3:5]
given = dict(pair.split("=", 1) for pair in sys.argv[5:])


class Client(stomp.ConnectionListener):
    """A connection that keeps what it is told, for tests that wait for it."""

    count = 0

    def __init__(self, passcode=None, login=None, heartbeats=(0, 0), connects=True, path="/stomp", authorization=None):
        self.changed = threading.Condition()
        self.messages, self.receipts, self.errors, self.ended = [], [], [], False
        at = [(host, int(port))]
        more = {"vhost": given["app"], "heartbeats": heartbeats}
        if transport == "ws":
            fields = {"Sec-WebSocket-Protocol": "v12.stomp"}
            if authorization:
                fields["Authorization"] = authorization
            self.connection = WSStompConnection(at, ws_path=path, header=fields, **more)
        elif version == "1.0":
            self.connection = stomp.StompConnection10(at)
        else:
            kind = stomp.StompConnection11 if version == "1.1" else stomp.StompConnection12
            self.connection = kind(at, **more)
        if transport == "tls":
            self.connection.set_ssl(at, ca_certs=given["ca"])
        self.connection.set_listener("", self)
        try:
            if authorization and login is None:
                self.connection.connect(wait=True)
            else:
                self.connection.connect(login or given["pub"], given.get("secret") if passcode is None else passcode, wait=True)
        except stomp.exception.ConnectFailedException:
            check("connect", not connects, self.errors)

    def on_message(self, frame):
        self.keep(self.messages, frame)

    def on_receipt(self, frame):
        self.keep(self.receipts, frame.headers["receipt-id"])

    def on_error(self, frame):
        self.keep(self.errors, frame)

    def on_disconnected(self):
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def keep(self, kept, what):
        with self.changed:
            kept.append(what)
            self.changed.notify_all()

    def wait(self, condition, seconds=120):
        with self.changed:
            return self.changed.wait_for(condition, seconds)

    def receipt(self, act):
        """Runs act with a receipt of its own, and waits for that."""
        Client.count += 1
        name = f"r{Client.count}"
        act(name)
        check(f"receipt {name}", self.wait(lambda: name in self.receipts), self.errors)

    def send(self, destination, body, **headers):
        self.receipt(lambda receipt: self.connection.send(destination, body, receipt=receipt, **headers))

    def subscribe(self, destination, id, ack="auto", **headers):
        self.receipt(lambda receipt: self.connection.subscribe(destination, id=id, ack=ack, receipt=receipt, **headers))

    def bodies(self):
        return [frame.body for frame in self.messages]

    def expect(self, what, bodies):
        self.wait(lambda: len(self.messages) >= len(bodies))
        equal(what, self.bodies(), bodies)

    def ack(self, frame, **more):
        if version == "1.2" or transport == "ws":
            self.connection.ack(frame.headers["ack"], **more)
        elif version == "1.1":
            self.connection.ack(frame.headers["message-id"], frame.headers["subscription"], **more)
        else:
            self.connection.ack(frame.headers["message-id"], **more)

    def nack(self, frame):
        if version == "1.2" or transport == "ws":
            self.connection.nack(frame.headers["ack"])
        else:
            self.connection.nack(frame.headers["message-id"], frame.headers["subscription"])

    def lose(self):
        """Ends the connection as a network does."""
        found = self.connection.transport.socket
        (found.sock if transport == "ws" else found).shutdown(socket.SHUT_RDWR)

    def leave(self):
        self.receipt(lambda receipt: self.connection.disconnect(receipt=receipt))


def topic():
    reader, writer = Client(), Client()
    reader.subscribe("/topic/news", "1")
    writer.send("/topic/news", "hello", content_type="text/plain", colour="r:e d")
    writer.send("/queue/news", '{"n": 1}')
    reader.expect("both kinds of destination publish", ["hello", '{"n": 1}'])
    headers = reader.messages[0].headers
    equal("the type is kept", headers["content-type"], "text/plain")
    equal("a header is kept", headers["colour"], "r:e d")
    equal("the destination", headers["destination"], "/topic/news")
    reader.receipt(lambda receipt: reader.connection.unsubscribe(**({"destination": "/topic/news", "id": "1"} if version == "1.0" else {"id": "1"}), receipt=receipt))
    writer.send("/topic/news", "late")
    time.sleep(0.3)
    equal("nothing after the end", len(reader.messages), 2)
    reader.leave()
    writer.leave()


def queue():
    writer = Client()
    for number in range(4):
        writer.send("/queue/jobs", str(number))
    worker = Client()
    worker.subscribe("/queue/jobs", "1", "client-individual", **{"prefetch-count": "2"})
    worker.expect("no more than the prefetch", ["0", "1"])
    worker.ack(worker.messages[1])
    worker.expect("an acknowledgement makes room", ["0", "1", "2"])
    worker.lose()
    other = Client()
    other.subscribe("/queue/jobs", "1", "client", **{"prefetch-count": "10"})
    other.expect("what was not acknowledged comes again, in order", ["0", "2", "3"])
    equal("a lost connection marks it", other.messages[0].headers.get("redelivered"), "true")
    other.ack(other.messages[2])
    other.leave()
    last = Client()
    last.subscribe("/queue/jobs", "1")
    last.subscribe("/queue/jobs/audit", "2")
    last.expect("another consumer gets all, the first nothing more", ["0", "1", "2", "3"])
    equal("the subscription", {frame.headers.get("subscription") for frame in last.messages}, {"2"})
    last.leave()
    after = Client()
    after.subscribe("/queue/jobs/audit", "1")
    time.sleep(0.5)
    equal("ack auto acknowledges", after.bodies(), [])
    after.leave()


def nack():
    worker = Client()
    worker.send("/queue/retry", "x")
    worker.subscribe("/queue/retry", "1", "client-individual")
    worker.expect("first", ["x"])
    worker.nack(worker.messages[0])
    worker.expect("again after NACK", ["x", "x"])
    worker.ack(worker.messages[1])
    worker.leave()


def transaction():
    worker, reader = Client(), Client()
    reader.subscribe("/topic/out", "1")
    for body in ["a", "b"]:
        worker.send("/queue/in", body)
    worker.subscribe("/queue/in", "1", "client-individual")
    worker.expect("both", ["a", "b"])
    worker.connection.begin(transaction="t")
    worker.connection.send("/topic/out", "aborted", transaction="t")
    worker.ack(worker.messages[0], transaction="t")
    worker.receipt(lambda receipt: worker.connection.abort(transaction="t", receipt=receipt))
    worker.connection.begin(transaction="u")
    worker.connection.send("/topic/out", "done", transaction="u")
    worker.ack(worker.messages[0], transaction="u")
    time.sleep(0.2)
    equal("nothing before COMMIT", reader.bodies(), [])
    worker.receipt(lambda receipt: worker.connection.commit(transaction="u", receipt=receipt))
    reader.expect("after COMMIT", ["done"])
    worker.leave()
    other = Client()
    other.subscribe("/queue/in", "1", "client-individual")
    other.expect("the committed acknowledgement holds, the other message comes again", ["b"])
    other.leave()
    reader.leave()


def heartbeat():
    client = Client(heartbeats=(1000, 1000))
    client.subscribe("/topic/beat", "1")
    time.sleep(4)
    check("both sides stay", client.connection.is_connected() and not client.errors, client.errors)
    client.send("/topic/beat", "x")
    client.expect("still there", ["x"])
    client.leave()


def large():
    client = Client()
    body = "ä\n" * 40_000
    client.subscribe("/queue/large", "1")
    client.send("/queue/large", body)
    client.expect("a large body", [body])
    client.connection.send("/queue/large", "x" * 300_000)
    check("a body that is too large is an error", client.wait(lambda: client.errors))
    check("the connection ends", client.wait(lambda: client.ended))


def access():
    def refused(what, act, **more):
        client = Client(**more)
        act(client.connection)
        check(what, client.wait(lambda: client.errors and client.ended), client.messages)
        equal(f"{what}: by access", client.errors[0].headers["message"].split(":")[0], "access refused")

    Client(passcode="x" * 600, connects=False)
    Client(login="ann", connects=False)
    stranger = Client(passcode="", connects=False)
    check("a client without a right is not connected", stranger.wait(lambda: stranger.errors and stranger.ended), stranger.errors)
    equal("by access", stranger.errors[0].headers["message"].split(":")[0], "access refused")
    worker = Client(passcode=given["auth"])
    worker.subscribe("/queue/a", "1")
    worker.leave()
    refused("an auth key does not publish", lambda c: c.send("/queue/a", "x"), passcode=given["auth"])
    refused("an auth key does not subscribe", lambda c: c.subscribe("/topic/a", id="1"), passcode=given["auth"])
    refused("a new consumer needs manage", lambda c: c.subscribe("/queue/a/new", id="1"), passcode=given["auth"])
    reader = Client(passcode=given["token"])
    reader.subscribe("/topic/t", "1")
    server = Client()
    server.send("/topic/t", "hello")
    reader.expect("a token reads", ["hello"])
    refused("a token that reads does not lease", lambda c: c.subscribe("/queue/t", id="1"), passcode=given["token"])
    # The test revokes the token.
    server.send("/topic/ready", "")
    check("a revoked token ends its connection", reader.wait(lambda: reader.errors and reader.ended), reader.errors)


def login():
    """A user of the application, whose right is to publish to the channel a."""
    user = Client(login="ana", passcode="right password")
    user.send("/topic/a", "hello")
    user.leave()
    client = Client(login="ana", passcode="wrong password", connects=False)
    check("a wrong password is refused", client.wait(lambda: client.errors and client.ended), client.errors)
    equal("in these words", client.errors[0].headers["message"],
        "access refused: host, login and passcode are not an application and a key or user of it")
    client = Client(login="ana", passcode="right password")
    client.connection.send("/topic/b", "x")
    check("a user has no other right", client.wait(lambda: client.errors and client.ended), client.errors)


def handshake():
    """A user whose right is to read and write the channel a, and a token that reads t, in the field Authorization."""
    def fields(password, scheme="Basic"):
        return f"{scheme} {base64.b64encode(f'ana:{password}'.encode()).decode()}"

    path = "/stomp/" + given["app"]
    user = Client(path=path, authorization=fields("right password", "Application Basic"))
    user.subscribe("/topic/a", "1")
    user.send("/topic/a", "hello")
    user.expect("the user reads and writes", ["hello"])
    user.leave()
    user = Client(path=path, authorization=fields("right password"))
    user.connection.send("/topic/b", "x")
    check("a user has no other right", user.wait(lambda: user.errors and user.ended), user.errors)
    reader = Client(path=path, authorization="Application Token " + given["token"])
    reader.subscribe("/topic/t", "1")
    reader.leave()
    signed = Client(path=path, authorization=fields("right password"), login=given["pub"])
    signed.send("/topic/b", "a passcode counts instead")
    signed.leave()
    for found in [fields("wrong password"), "Application Token x"]:
        try:
            client = Client(path=path, authorization=found, connects=False)
            check("wrong credentials open no WebSocket", not client.connection.is_connected(), client.messages)
        except websocket.WebSocketBadStatusException as error:
            equal("wrong credentials are answered by HTTP", error.status_code, 401)


run(globals()[sys.argv[1]])
