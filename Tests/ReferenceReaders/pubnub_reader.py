#!/usr/bin/env python3
"""The stock PubNub SDK for Python, beside a module that speaks to it.

    pubnub_reader.py requests                  makes signed calls against a server of its own on loopback, and
                                               prints each request as it was sent, one JSON object a line
    pubnub_reader.py tokens < TOKENS           prints what the SDK and cbor2 read in each token
    pubnub_reader.py search < PAIRS            prints 1 or 0 for each [pattern, name], by Python's re
    pubnub_reader.py replies < REPLIES         prints what the SDK reads in each answer to a grant
"""
import base64, http.server, json, re, sys, threading

import cbor2
from pubnub.models.consumer.access_manager import PNAccessManagerGrantResult
from pubnub.models.consumer.v3.access_manager import PNGrantTokenResult
from pubnub.models.consumer.v3.channel import Channel
from pubnub.models.consumer.v3.group import Group
from pubnub.models.consumer.v3.uuid import UUID
from pubnub.pnconfiguration import PNConfiguration
from pubnub.pubnub import PubNub

ODD = "a b+c~'é(1)!*%2F&=?,"


def client(port=1, secret=True):
    config = PNConfiguration()
    config.publish_key, config.subscribe_key = "pub-c-shop", "sub-c-shop"
    config.secret_key = "sec-c-shop" if secret else None
    config.uuid, config.auth_key = "user 1", "my auth+key"
    config.origin, config.ssl = f"127.0.0.1:{port}", False
    config.non_subscribe_request_timeout = config.subscribe_request_timeout = 5
    return PubNub(config)


class Recorder(http.server.BaseHTTPRequestHandler):
    """Keeps the last request as it was sent, and answers nothing of use."""

    last = None

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        Recorder.last = {
            "method": self.command, "target": self.path, "body": base64.b64encode(body).decode()}
        reply = b"[1,\"Sent\",\"1\"]"
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_GET = do_POST = do_DELETE = answer

    def log_message(self, *arguments):
        pass


def requests():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pubnub = client(server.server_address[1])
    from pubnub.endpoints.presence.heartbeat import Heartbeat
    from pubnub.endpoints.pubsub.subscribe import Subscribe

    def subscribe(groups, expression=None):
        call = Subscribe(pubnub).channels(["a", "b c"]).channel_groups(groups).timetoken(17)
        return call.filter_expression(expression) if expression else call

    calls = {
        "grant, application": lambda: pubnub.grant().read(True).write(True).ttl(0),
        "grant, channels and keys": lambda: pubnub.grant().channels(["a", "b"]).auth_keys(
            ["k 1", "k+2"]).read(True).manage(False).ttl(15),
        "grant, groups": lambda: pubnub.grant().channel_groups([":", "cg"]).manage(True),
        "grant, users": lambda: pubnub.grant().uuids(["u"]).auth_keys("k").get(True),
        "audit": lambda: pubnub.audit(),
        "audit, names": lambda: pubnub.audit().channels(["a b", "c"]).auth_keys("k 1"),
        "audit, odd names": lambda: pubnub.audit().channel_groups([ODD]).auth_keys(ODD),
        "grant token": lambda: pubnub.grant_token().channels(
            [Channel.id("ch é").read().write(), Channel.pattern("^a-[0-9]+$").read()]).groups(
            [Group.id("g").manage()]).uuids([UUID.id("u").get()]).authorized_uuid("u 1").ttl(
            15).meta({"a": 1, "b": "x"}),
        "revoke token": lambda: pubnub.revoke_token("qEF2AkF0=_-"),
        "publish": lambda: pubnub.publish().channel("a b").message({"x": ODD}).meta({"m": 1}),
        "publish by post": lambda: pubnub.publish().channel("a").message({"x": ODD}).use_post(True),
        "fire": lambda: pubnub.fire().channel("a").message("x"),
        "signal": lambda: pubnub.signal().channel("a").message("x"),
        "time": lambda: pubnub.time(),
        "history": lambda: pubnub.history().channel("a/b").count(5),
        "fetch": lambda: pubnub.fetch_messages().channels(["a", ODD]),
        "message counts": lambda: pubnub.message_counts().channel("a").channel_timetokens([17]),
        "delete messages": lambda: pubnub.delete_messages().channel("a").start(1).end(2),
        "here-now": lambda: pubnub.here_now().channels(["a", "b"]).channel_groups(["g 1"]),
        "where-now": lambda: pubnub.where_now().uuid("u 1"),
        "get state": lambda: pubnub.get_state().channels("a").uuid("u"),
        "set state": lambda: pubnub.set_state().channels("a").channel_groups("g 1").state(
            {"k": ODD}),
        "add to group": lambda: pubnub.add_channel_to_channel_group().channels(
            ["a", "b c"]).channel_group("g"),
        "list group": lambda: pubnub.list_channels_in_channel_group().channel_group("g"),
        "remove from group": lambda: pubnub.remove_channel_from_channel_group().channels(
            "a").channel_group("g"),
        "remove group": lambda: pubnub.remove_channel_group().channel_group("g"),
        "subscribe": lambda: subscribe(["g"]),
        "subscribe, odd names": lambda: subscribe(["g 1", "h+2"], "meta.a == 'x y' && data.b > 1"),
        "heartbeat": lambda: Heartbeat(pubnub).channels(["a"]).channel_groups(["g"]).state(
            {"a": {"k": ODD}}),
    }
    for name, call in calls.items():
        Recorder.last = None
        try:
            call().sync()
        except Exception as error:  # the answer is no answer to most calls
            if Recorder.last is None:
                print(f"{name}: {error!r}", file=sys.stderr)
                sys.exit(1)
        print(json.dumps({"name": name, **Recorder.last}), flush=True)
    server.shutdown()


def tokens():
    for line in sys.stdin:
        token = line.strip()
        parsed = client().parse_token(token)
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        decoded = cbor2.loads(raw)
        print(json.dumps({
            "parsed": parsed, "keys": [key.decode() for key in decoded],
            "kinds": [key.decode() for key in decoded[b"res"]],
            "signatureByteCount": len(decoded[b"sig"]),
            "isSame": cbor2.dumps(decoded) == raw}))


def replies():
    for line in sys.stdin:
        value = json.loads(line)
        if "data" in value:
            print(json.dumps({"token": PNGrantTokenResult.from_json(value["data"]).token}))
            continue
        result = PNAccessManagerGrantResult.from_json(value["payload"])

        def entry(item):
            keys = {name: [k.read_enabled, k.write_enabled, k.get] for name, k in item.auth_keys.items()}
            return {"flags": [item.read_enabled, item.write_enabled], "auths": keys}

        print(json.dumps({
            "level": result.level, "ttl": result.ttl,
            "flags": [result.read_enabled, result.write_enabled],
            "channels": {name: entry(item) for name, item in result.channels.items()},
            "groups": {name: entry(item) for name, item in result.groups.items()},
            "uuids": {name: entry(item) for name, item in result.uuids.items()}}))


def search():
    for line in sys.stdin:
        pattern, name = json.loads(line)
        print("1" if re.search(pattern, name, re.ASCII) else "0")


{"requests": requests, "tokens": tokens, "search": search, "replies": replies}[sys.argv[1]]()
