#!/usr/bin/env python3
"""Drives a message server with Pusher's stock clients for Python, unchanged: pysher for clients, pusher for servers.

    pusher_client.py SCENARIO HOST:PORT [NAME=VALUE ...]

Names: id, key, secret, token, ca; master and values for encrypted channels. With ca, the file of a private authority,
the clients use TLS; pysher finds that file by the environment variable SSL_CERT_FILE. Prints one line for each check:
"ok WHAT" or "not ok WHAT: WHY". A scenario that fails in between prints "not ok" with its error.
"""
import base64, hashlib, json, sys, threading, time

import nacl.secret
import pusher
import pusher.errors
import pusher.requests
import pysher
import websocket

from scenario_checks import check, equal, run

host, port = sys.argv[2].rsplit(":", 1)
given = dict(pair.split("=", 1) for pair in sys.argv[3:])


class PrivateAuthority(pusher.requests.RequestsBackend):
    """The SDK's own, whose list of authorities cannot be given as an option."""

    def __init__(self, client, **options):
        super().__init__(client, **options)
        self.options["verify"] = given["ca"]


def server(**changes):
    values = {**given, **changes}
    return pusher.Pusher(
        app_id=values["id"], key=values["key"], secret=values["secret"], host=host, port=int(port), timeout=120,
        ssl="ca" in given, backend=PrivateAuthority if "ca" in given else None,
        encryption_master_key_base64=values.get("master"))


class Client:
    """A pysher client that keeps what it is told, for tests that wait for it."""

    def __init__(self, secret=None, user=None, connects=True, **changes):
        self.changed = threading.Condition()
        self.events, self.errors, self.connects = [], [], 0
        self.pusher = pysher.Pusher(
            changes.get("key", given["key"]), custom_host=host, port=int(port), secure="ca" in given,
            secret=given["secret"] if secret is None else secret, user_data=user, reconnect_interval=1,
            auth_endpoint=changes.get("endpoint"), auth_endpoint_headers=changes.get("fields", {}))
        self.pusher.connection.bind("pusher:connection_established", self.established)
        self.pusher.connection.bind("pusher:error", self.failed)
        # An answer can come before a channel has its handlers.
        self.handler = self.pusher.connection.event_handler
        self.pusher.connection.event_handler = self.take
        self.pusher.connect()
        if connects:
            check("connect", self.wait(lambda: self.connects > 0 or self.errors), "not connected")

    def established(self, data):
        with self.changed:
            self.connects += 1
            self.changed.notify_all()

    def failed(self, data):
        with self.changed:
            self.errors.append(data)
            self.changed.notify_all()

    def take(self, name, data, channel):
        if name.startswith("pusher"):
            self.keep(data, channel, name)
        with self.changed:  # not between a subscription and its handlers
            self.handler(name, data, channel)

    def keep(self, data, channel, name):
        with self.changed:
            self.events.append((channel, name, data))
            self.changed.notify_all()

    def wait(self, condition, seconds=120):
        with self.changed:
            return self.changed.wait_for(condition, seconds)

    def subscribe(self, name, *events, auth=None, succeeds=True):
        with self.changed:
            channel = self.pusher.subscribe(name, auth)
            for event in events:
                channel.bind(event, self.keep, name, event)
        wanted = "pusher_internal:subscription_succeeded" if succeeds else "pusher:subscription_error"
        check(f"{wanted} on {name}", self.wait(lambda: self.named(name, wanted)), f"only {self.events}")
        return channel

    def named(self, channel, name):
        return [data for c, n, data in self.events if (c, n) == (channel, name)]

    def gets(self, channel, name, wanted, seconds=120):
        found = self.wait(lambda: self.named(channel, name)[-len(wanted):] == wanted, seconds)
        check(f"{name} on {channel}", found, f"{self.named(channel, name)!r} instead of {wanted!r}")

    @property
    def socket_id(self):
        return self.pusher.connection.socket_id


def refused(what, error, call):
    try:
        call()
        check(what, False, "it was allowed")
    except error as found:
        check(what, type(found) is error, repr(found))


# MARK: - Scenarios


def line():
    """A server triggers, a client on a public channel gets it."""
    client, sender = Client(), server()
    check("the socket id has the form that SDKs accept", all(p.isdigit() for p in client.socket_id.split(".")))
    client.subscribe("orders", "new")
    equal("the answer is an object", sender.trigger("orders", "new", {"n": 1}), {})
    client.gets("orders", "new", ['{"n": 1}'])
    sender.trigger("orders", "new", "a text é")
    client.gets("orders", "new", ["a text é"])
    check("the ping at the start was answered", client.pusher.connection.pong_received, "no pong")
    sender.trigger("orders", "new", "not for the sender", client.socket_id)
    sender.trigger("orders", "new", "for all")
    client.gets("orders", "new", ["a text é", "for all"])
    client.pusher.unsubscribe("orders")
    client.subscribe("other", "new")
    sender.trigger(["orders", "other"], "new", "last")
    client.gets("other", "new", ["last"])
    equal("nothing after the unsubscription", len(client.named("orders", "new")), 3)
    client.pusher.disconnect(5)


def private():
    """Signed channels, client events and presence."""
    one = Client(user={"user_id": "u1", "user_info": {"name": "é x"}})
    two = Client(user={"user_id": 2})
    one.subscribe("private-a", "client-x")
    channel = two.subscribe("private-a", "client-x")
    channel.trigger("client-x", {"n": 1})
    one.gets("private-a", "client-x", ['{"n":1}'])
    one.subscribe("presence-a", "client-y")
    one.gets("presence-a", "pusher_internal:subscription_succeeded", [
        '{"presence":{"ids":["u1"],"hash":{"u1":{"name":"é x"}},"count":1}}'])
    other = two.subscribe("presence-a", "client-y")
    roster = json.loads(two.named("presence-a", "pusher_internal:subscription_succeeded")[0])["presence"]
    equal("the roster has both", (roster["ids"], roster["count"]), (["u1", "2"], 2))
    one.gets("presence-a", "pusher_internal:member_added", ['{"user_id":"2","user_info":null}'])
    other.trigger("client-y", "hello")
    one.gets("presence-a", "client-y", ["hello"])
    equal("a client event does not come back", two.named("presence-a", "client-y"), [])
    equal("nor on private channels", two.named("private-a", "client-x"), [])
    equal("users", server().users_info("presence-a"), {"users": [{"id": "u1"}, {"id": "2"}]})
    two.pusher.disconnect(5)
    one.gets("presence-a", "pusher_internal:member_removed", ['{"user_id":"2"}'])
    signature = server().authenticate("private-b", one.socket_id)["auth"]
    one.subscribe("private-b", auth=signature)
    one.subscribe("private-c", auth=signature, succeeds=False)
    one.gets("private-c", "pusher:subscription_error", [
        '{"type":"AuthError","error":"auth is not the signature of this channel for this connection","status":401}'])
    stranger = Client(secret="wrong")
    stranger.subscribe("private-a", succeeds=False)
    server().terminate_user_connections("u1")
    check("termination", one.wait(lambda: one.errors), "no error")
    equal("its code", one.errors[0]["code"], 4009)


def calls():
    """Every call of the server's SDK."""
    sender, client = server(), Client(user={"user_id": "u1"})
    client.subscribe("a", "e")
    client.subscribe("presence-a_=@,.;B", "e")
    equal("a batch", sender.trigger_batch([
        {"channel": "a", "name": "e", "data": "1"},
        {"channel": "presence-a_=@,.;B", "name": "e", "data": {"x": "é"}}]), {})
    client.gets("a", "e", ["1"])
    client.gets("presence-a_=@,.;B", "e", ['{"x": "é"}'])
    equal("channels", sender.channels_info(), {"channels": {"a": {}, "presence-a_=@,.;B": {}}})
    equal("presence channels", sender.channels_info("presence-", ["user_count"]),
          {"channels": {"presence-a_=@,.;B": {"user_count": 1}}})
    equal("a prefix that no one can have", sender.channels_info("presence-é +", []), {"channels": {}})
    equal("a channel", sender.channel_info("a", ["subscription_count"]), {"occupied": True, "subscription_count": 1})
    equal("a name with punctuation", sender.channel_info("presence-a_=@,.;B", ["user_count"]),
          {"occupied": True, "user_count": 1})
    equal("an empty channel", sender.channel_info("b"), {"occupied": False})
    for call in [
        lambda: sender.trigger("a", "pusher:x", "1"), lambda: sender.trigger("a", "", "1"),
        lambda: sender.trigger("x" * 165, "e", "1"), lambda: sender.channels_info(attributes=["user_count"]),
        lambda: sender.trigger_batch([{"channel": "a", "name": "e", "data": "1"}] * 11),
        lambda: sender.channel_info("a", ["user_count"]), lambda: sender.users_info("presence"),
    ]:
        refused("400", pusher.errors.PusherBadRequest, call)
    refused("a wrong secret", pusher.errors.PusherBadAuth, lambda: server(secret="wrong").trigger("a", "e", "1"))
    refused("a wrong key", pusher.errors.PusherBadAuth, lambda: server(key="wrong").trigger("a", "e", "1"))
    refused("a reserved name", pusher.errors.PusherForbidden, lambda: sender.trigger("a-pnpres", "e", "1"))
    refused("another application", pusher.errors.PusherBadStatus, lambda: server(id="99").trigger("a", "e", "1"))
    refused("too much data", pusher.errors.PusherBadStatus, lambda: sender.trigger("a", "e", "é" * 5121))
    sender.trigger("a", "e", "é" * 5120)
    client.gets("a", "e", ["é" * 5120])
    equal("nothing else came", len(client.named("a", "e")), 2)


def cache():
    """Cache channels give the newest message of the log."""
    sender, client = server(), Client()
    client.subscribe("cache-a", "e")
    client.gets("cache-a", "pusher:cache_miss", ["{}"])
    for number in range(3):
        sender.trigger("cache-a", "e", str(number))
    client.gets("cache-a", "e", ["0", "1", "2"])
    late = Client()
    late.subscribe("cache-a", "e")
    late.gets("cache-a", "e", ["2"])
    equal("once", len(late.named("cache-a", "e")), 1)
    info = sender.channel_info("cache-a", ["cache"])["cache"]
    equal("its data", info["data"], "2")
    check("its time to live", 1700 < info["ttl"] <= 1800, info)
    equal("none", sender.channel_info("private-cache-b", ["cache"])["cache"], None)
    channel = client.subscribe("private-cache-b", "client-x")
    late.subscribe("private-cache-b", "client-x")
    channel.trigger("client-x", "1")
    late.gets("private-cache-b", "client-x", ["1"])
    third = Client()
    third.subscribe("private-cache-b", "client-x")
    third.gets("private-cache-b", "pusher:cache_miss", ["{}"])


def encrypted():
    """The server relays what it cannot read."""
    sender, client = server(master=base64.b64encode(b"k" * 32).decode()), Client()
    client.subscribe("private-encrypted-z", "e")
    sender.trigger("private-encrypted-z", "e", {"x": 1})
    check("an event", client.wait(lambda: client.named("private-encrypted-z", "e")), "none")
    sealed = json.loads(client.named("private-encrypted-z", "e")[0])
    key = hashlib.sha256(b"private-encrypted-z" + b"k" * 32).digest()
    box = nacl.secret.SecretBox(key)
    text = box.decrypt(base64.b64decode(sealed["ciphertext"]), base64.b64decode(sealed["nonce"]))
    equal("it opens with the channel's key", json.loads(text), {"x": 1})


def encrypts():
    """Fills the channel "private-encrypted-theirs" with `values`."""
    sender = server()
    for value in json.loads(given["values"]):
        sender.trigger("private-encrypted-theirs", "e", json.dumps(value))
    check("all are published", True)


def decrypts():
    """Reads the channel "private-encrypted-ours", which another implementation fills with `values`.

    pysher hands over what is encrypted, so that PyNaCl decrypts it under the key that the SDK for servers gives out.
    """
    name, values, client = "private-encrypted-ours", json.loads(given["values"]), Client()
    client.subscribe(name, "e")
    check("all arrive", client.wait(lambda: len(client.named(name, "e")) >= len(values)), client.events)
    box = nacl.secret.SecretBox(base64.b64decode(server().authenticate(name, client.socket_id)["shared_secret"]))
    events = [json.loads(data) for data in client.named(name, "e")]
    opened = [box.decrypt(base64.b64decode(e["ciphertext"]), base64.b64decode(e["nonce"])) for e in events]
    equal("decrypted", [json.loads(text) for text in opened], values)


def closed():
    """Channels of an application that is not open."""
    client = Client()
    client.subscribe("a", succeeds=False)
    client.subscribe("private-a", "e")
    server().trigger("private-a", "e", "1")
    client.gets("private-a", "e", ["1"])
    client.subscribe("private-t", "e", auth=given["token"])
    client.subscribe("private-u", auth=given["token"], succeeds=False)
    equal("403", json.loads(client.named("private-u", "pusher:subscription_error")[0])["status"], 403)


def untrusted():
    """Without the private authority among those that the client knows."""
    client = Client(connects=False)
    for _ in range(1200):
        if client.pusher.connection.state in ("failed", "unavailable"):
            break
        time.sleep(0.1)
    check("the connection fails", client.pusher.connection.state in ("failed", "unavailable"))
    equal("it never was connected", client.connects, 0)


def unknown():
    """A key that no application has: pysher stops for good."""
    client = Client(key="sub-c-none")
    equal("the code", client.errors[0]["code"], 4001)
    client.pusher.connection.join(5)
    check("it does not come again", not client.pusher.connection.is_alive() and client.connects == 0)


def endpoint():
    """The server's own authorization endpoint: ana reads and writes private-c, and reads presence-c."""
    def fields(password, scheme="Basic"):
        return {"Authorization": f"{scheme} {base64.b64encode(f'ana:{password}'.encode()).decode()}"}

    def client(fields, user=None):
        return Client(secret="", user=user, endpoint=f"http://{host}:{port}/pusher/auth/{given['key']}", fields=fields)

    one = client(fields("right password"), {"user_id": "ana", "user_info": {"n": 1}})
    two = client(fields("right password", "Application Basic"), {"user_id": "bob"})
    one.subscribe("private-c", "e", "client-x")
    channel = two.subscribe("private-c", "e", "client-x")
    server().trigger("private-c", "e", "1")
    one.gets("private-c", "e", ["1"])
    channel.trigger("client-x", {"n": 1})
    one.gets("private-c", "client-x", ['{"n":1}'])
    one.subscribe("presence-c", "e")
    one.gets("presence-c", "pusher_internal:subscription_succeeded", [
        '{"presence":{"ids":["ana"],"hash":{"ana":{"n":1}},"count":1}}'])
    two.subscribe("presence-c", succeeds=False)
    bearer = client({"Authorization": "Application Token " + given["token"]})
    bearer.subscribe("private-t", "e")
    refused("no right", AssertionError, lambda: one.pusher.subscribe("private-d"))
    refused("a wrong password", AssertionError, lambda: client(fields("wrong password")).pusher.subscribe("private-c"))
    refused("no credentials", AssertionError, lambda: client({}).pusher.subscribe("private-c"))
    # The library under pysher, which can send the field in the handshake.
    url = f"ws://{host}:{port}/app/{given['key']}?protocol=7"
    socket = websocket.create_connection(url, header=fields("right password"), timeout=120)
    equal("established", json.loads(socket.recv())["event"], "pusher:connection_established")
    socket.send(json.dumps({"event": "pusher:subscribe", "data": {"channel": "private-c"}}))
    equal("without auth", json.loads(socket.recv())["event"], "pusher_internal:subscription_succeeded")
    try:
        websocket.create_connection(url, header=fields("wrong password"), timeout=120)
        check("a wrong password in the handshake", False, "it was taken")
    except websocket.WebSocketBadStatusException as error:
        equal("a wrong password in the handshake", error.status_code, 401)


run(globals()[sys.argv[1]])
