#!/usr/bin/env python3
"""Drives a message server with the stock PubNub SDK for Python, unchanged.

    pubnub_client.py SCENARIO ORIGIN [NAME=VALUE ...]

Names: pub, sub, secret, auth, token, ssl, sdk; cipher, form and values for encryption. With sdk=asyncio, the clients are
those of the SDK for asyncio. Prints one line for each check: "ok WHAT" or "not ok WHAT: WHY". A scenario that fails in
between prints "not ok" with its error.
"""
import asyncio, base64, json, logging, sys, threading, time

from pubnub.callbacks import SubscribeCallback
from pubnub.crypto import AesCbcCryptoModule, LegacyCryptoModule
from pubnub.enums import PNReconnectionPolicy, PNStatusCategory
from pubnub.exceptions import PubNubException
from pubnub.models.consumer.v3.channel import Channel
from pubnub.models.consumer.v3.group import Group
from pubnub.pnconfiguration import PNConfiguration
from pubnub.pubnub import PubNub
from pubnub.pubnub_asyncio import PubNubAsyncio
from pubnub.structures import Envelope

from scenario_checks import check, equal, run

logging.disable(logging.CRITICAL)
origin = sys.argv[2]
given = dict(pair.split("=", 1) for pair in sys.argv[3:])


# The event loop of the SDK for asyncio, which has a thread of its own, so that scenarios can wait.
loop = asyncio.new_event_loop() if given.get("sdk") == "asyncio" else None
if loop:
    threading.Thread(target=loop.run_forever, daemon=True).start()


class AsyncioClient(PubNubAsyncio):
    """A client whose futures are waited for by `sync()`, so that both SDKs have the same scenarios."""

    def request_sync(self, options):
        done = asyncio.run_coroutine_threadsafe(self.request_future(lambda: options, None), loop).result(60)
        return Envelope(done.result, done.status)


def do(call):
    """Makes a call that returns before it ends; the SDK for asyncio must get it on its event loop."""
    async def body():
        return call()

    return asyncio.run_coroutine_threadsafe(body(), loop).result(60) if loop else call()


def client(uuid, **changes):
    values = {**given, **changes}
    config = PNConfiguration()
    config.publish_key, config.subscribe_key = values["pub"], values["sub"]
    config.secret_key = values.get("secret")
    config.auth_key = values.get("auth")
    config.uuid, config.origin, config.ssl = uuid, origin, values.get("ssl") == "1"
    config.filter_expression = values.get("filter")
    config.non_subscribe_request_timeout = 120
    config.daemon = True
    if values.get("cipher"):
        config.cipher_key = values["cipher"]
        config.use_random_initialization_vector = values["form"] != "legacyStaticIV"
        if values.get("module", True):
            module = AesCbcCryptoModule if values["form"] == "aesCBC" else LegacyCryptoModule
            config.crypto_module = module(config)
    if loop:
        # Without it, this SDK leaves no channel, and tries for minutes after a 403.
        config.enable_presence_heartbeat = True
        config.reconnect_policy = PNReconnectionPolicy.NONE
    if "heartbeat" in values:
        config.set_presence_timeout_with_custom_interval(int(values["heartbeat"]), 0)
    pubnub = do(lambda: (AsyncioClient if loop else PubNub)(config))
    if values.get("token"):
        pubnub.set_token(values["token"])
    return pubnub


class Listener(SubscribeCallback):
    """Keeps what arrives, for tests that wait for it."""

    def __init__(self):
        self.changed = threading.Condition()
        self.statuses, self.messages, self.presences, self.signals = [], [], [], []

    def add(self, kept, event):
        with self.changed:
            kept.append(event)
            self.changed.notify_all()

    def status(self, pubnub, status):
        self.add(self.statuses, status)

    def message(self, pubnub, message):
        self.add(self.messages, message)

    def presence(self, pubnub, presence):
        self.add(self.presences, presence)

    def signal(self, pubnub, signal):
        self.add(self.signals, signal)

    def wait(self, condition, seconds=120):
        with self.changed:
            return self.changed.wait_for(condition, seconds)

    def wait_connected(self):
        return self.wait(
            lambda: any(s.category == PNStatusCategory.PNConnectedCategory for s in self.statuses))

    def wait_denied(self):
        """Waits until the server has ended the right to an open poll: the SDK for asyncio does not say why."""
        end = PNStatusCategory.PNUnexpectedDisconnectCategory if loop else PNStatusCategory.PNAccessDeniedCategory
        return self.wait(lambda: any(s.category == end for s in self.statuses))

    def texts(self):
        return [m.message for m in self.messages]


def listening(pubnub, channels=(), groups=(), presence=False, place=0):
    listener = Listener()
    pubnub.add_listener(listener)
    builder = pubnub.subscribe()
    if channels:
        builder = builder.channels(list(channels))
    if groups:
        builder = builder.channel_groups(list(groups))
    if presence:
        builder = builder.with_presence()
    if place:
        builder = builder.with_timetoken(place)
    do(builder.execute)
    check(f"subscribe to {list(channels) + list(groups)}", listener.wait_connected(), "not connected")
    return listener


def refused(what, call, status=403, text=None):
    try:
        call()
        check(what, False, "it was allowed")
    except PubNubException as error:
        code = getattr(error, "_status_code", None)
        check(what, code == status and (text is None or text in str(error)), f"{code} {error}")


# MARK: - Scenarios


def line():
    """One client publishes, another receives."""
    reader, writer = client("reader"), client("writer")
    now = reader.time().sync().result
    check("time", 16e16 < int(str(now)) < 99e15 or int(str(now)) > 16e15, str(now))
    listener = listening(reader, ["orders"])
    places = []
    for message in ["text", 1, 1.5, True, None, {"a": [1, {"b": "c/d?e&f%"}]}, "żółć 🎈", "", []]:
        if message is None:
            continue
        places.append(int(writer.publish().channel("orders").message(message).sync().result.timetoken))
    post = {"long": "x" * 20_000}
    places.append(int(
        writer.publish().channel("orders").message(post).use_post(True).sync().result.timetoken))
    packed = {"packed": "y" * 20_000}
    places.append(int(writer.publish().channel("orders").message(packed).use_post(True)
                      .use_compression(True).sync().result.timetoken))
    wanted = ["text", 1, 1.5, True, {"a": [1, {"b": "c/d?e&f%"}]}, "żółć 🎈", "", [], post, packed]
    check("all arrive", listener.wait(lambda: len(listener.messages) >= len(wanted)), listener.texts())
    equal("in their order, each once", listener.texts(), wanted)
    equal("with the places of the replies", [int(m.timetoken) for m in listener.messages], places)
    equal("with their publisher", {m.publisher for m in listener.messages}, {"writer"})
    equal("with their channel", {m.channel for m in listener.messages}, {"orders"})
    equal("places rise", places, sorted(set(places)))
    do(reader.unsubscribe_all)


def messages():
    """What a message has beside its payload; signals; what is refused."""
    reader, writer = client("reader"), client("writer")
    listener = listening(reader, ["m"])
    writer.publish().channel("m").message("a").meta({"color": "red", "n": 3}).sync()
    writer.publish().channel("m").message("b").custom_message_type("text-note").sync()
    writer.publish().channel("m").message("c").should_store(False).sync()
    writer.publish().channel("m").message("d").ttl(1).sync()
    writer.signal().channel("m").message("typing").sync()
    writer.fire().channel("m").message("not delivered").sync()
    writer.publish().channel("m").message("e").sync()
    check("all arrive", listener.wait(lambda: len(listener.messages) >= 5 and listener.signals),
          listener.texts())
    equal("messages", listener.texts(), ["a", "b", "c", "d", "e"])
    equal("meta", listener.messages[0].user_metadata, {"color": "red", "n": 3})
    equal("custom type", listener.messages[1].custom_message_type, "text-note")
    equal("signal", [(s.message, s.publisher) for s in listener.signals], [("typing", "writer")])
    kept = writer.history().channel("m").count(100).include_meta(True).include_timetoken(True).sync().result
    equal("store=0 and signals are not in history", [m.entry for m in kept.messages], ["a", "b", "d", "e"])
    equal("meta in history", kept.messages[0].meta, {"color": "red", "n": 3})
    refused("signal too large", lambda: writer.signal().channel("m").message("x" * 70).sync(), 400,
            "Signal size too large")
    refused("message too large", lambda: writer.publish().channel("m").message("x" * 33_000)
            .use_post(True).sync(), 413, "Message Too Large")
    refused("request too long", lambda: writer.publish().channel("m").message("x" * 33_000).sync(), 413)
    wrong = client("wrong", pub="pub-c-wrong")
    refused("wrong publish key", lambda: wrong.publish().channel("m").message("x").sync(), 400,
            "Invalid Key")
    wrong = client("wrong", sub="sub-c-wrong")
    refused("wrong subscribe key", lambda: wrong.publish().channel("m").message("x").sync(), 400)
    refused("presence channel", lambda: writer.publish().channel("m-pnpres").message("x").sync(), 403)
    refused("pattern", lambda: writer.publish().channel("m.*").message("x").sync(), 403)
    do(reader.unsubscribe_all)


def presence():
    watcher, alice, bob = client("watcher"), client("alice"), client("bob")
    seen = listening(watcher, ["room"], presence=True)
    # The SDK for asyncio sends a heartbeat beside its first subscribe: if the heartbeat is first, the join comes before
    # the subscriber's first timetoken.
    if not loop:
        check("own join", seen.wait(lambda: any(
            p.event == "join" and p.uuid == "watcher" for p in seen.presences)), "no join")
    listening(alice, ["room", "hall"])
    check("join", seen.wait(lambda: any(
        p.event == "join" and p.uuid == "alice" and p.occupancy == 2 for p in seen.presences)),
        [(p.event, p.uuid, p.occupancy) for p in seen.presences])
    here = alice.here_now().channels(["room"]).include_uuids(True).sync().result
    equal("here-now of one", (here.total_occupancy, sorted(o.uuid for o in here.channels[0].occupants)),
          (2, ["alice", "watcher"]))
    here = alice.here_now().channels(["room", "hall"]).include_state(True).sync().result
    equal("here-now of several", sorted((c.channel_name, c.occupancy) for c in here.channels),
          [("hall", 1), ("room", 2)])
    here = alice.here_now().sync().result
    equal("here-now of all", {c.channel_name: c.occupancy for c in here.channels if c.channel_name in ("hall", "room")},
          {"hall": 1, "room": 2})
    equal("where-now", sorted(alice.where_now().uuid("alice").sync().result.channels), ["hall", "room"])
    state = alice.set_state().channels(["room"]).state({"mood": "fine", "n": 1.10}).sync().result.state
    equal("set state", state, {"mood": "fine", "n": 1.10})
    check("state change", seen.wait(lambda: any(
        p.event == "state-change" and p.state == {"mood": "fine", "n": 1.10} for p in seen.presences)),
        [(p.event, p.state) for p in seen.presences])
    equal("get state", alice.get_state().channels(["room"]).sync().result.channels["room"],
          {"mood": "fine", "n": 1.10})
    several = alice.get_state().channels(["room", "hall"]).sync().result.channels
    equal("get state of several", several["room"], {"mood": "fine", "n": 1.10})
    here = bob.here_now().channels(["room"]).include_state(True).sync().result
    equal("state in here-now", {o.uuid: o.state for o in here.channels[0].occupants}["alice"],
          {"mood": "fine", "n": 1.10})
    do(alice.unsubscribe().channels(["room"]).execute)
    check("leave", seen.wait(lambda: any(
        p.event == "leave" and p.uuid == "alice" for p in seen.presences)),
        [(p.event, p.uuid) for p in seen.presences])
    quick = client("quick", heartbeat=20)
    equal("heartbeat timeout is taken", quick.config.heartbeat_default_values, False)
    do(alice.unsubscribe_all)
    do(watcher.unsubscribe_all)


def groups():
    reader, writer = client("reader"), client("writer")
    writer.add_channel_to_channel_group().channels(["g1", "g2"]).channel_group("all").sync()
    equal("members", sorted(writer.list_channels_in_channel_group().channel_group("all").sync()
                            .result.channels), ["g1", "g2"])
    listener = listening(reader, groups=["all"], presence=True)
    writer.publish().channel("g2").message("by group").sync()
    check("through a group", listener.wait(lambda: listener.messages), "nothing")
    equal("subscription", (listener.messages[0].channel, listener.messages[0].subscription), ("g2", "all"))
    check("presence through a group", listener.wait(lambda: any(
        p.uuid == "reader" and p.channel == "g1" for p in listener.presences)),
        [(p.channel, p.subscription, p.uuid) for p in listener.presences])
    # A change of the group reaches the open poll.
    writer.add_channel_to_channel_group().channels(["g3"]).channel_group("all").sync()
    for _ in range(600):
        writer.publish().channel("g3").message("new member").sync()
        if listener.wait(lambda: len(listener.messages) > 1, 0.2):
            break
    check("a new member of an open poll", "new member" in listener.texts(), listener.texts())
    writer.remove_channel_from_channel_group().channels(["g1"]).channel_group("all").sync()
    equal("a member less", sorted(writer.list_channels_in_channel_group().channel_group("all").sync()
                                  .result.channels), ["g2", "g3"])
    writer.remove_channel_group().channel_group("all").sync()
    equal("no members", writer.list_channels_in_channel_group().channel_group("all").sync()
          .result.channels, [])
    refused("a pattern as a member", lambda: writer.add_channel_to_channel_group().channels(["a.*"])
            .channel_group("all").sync(), 400)
    do(reader.unsubscribe_all)


def patterns():
    reader, writer = client("reader"), client("writer")
    listener = listening(reader, ["w.*", "w.a"])
    writer.publish().channel("w.a").message("direct").sync()
    writer.publish().channel("w.b.c").message("deep").sync()
    writer.publish().channel("wx").message("other").sync()
    writer.publish().channel("w.z").message("last").sync()
    check("by pattern", listener.wait(lambda: len(listener.messages) >= 3), listener.texts())
    equal("each once", [(m.message, m.subscription) for m in listener.messages],
          [("direct", None), ("deep", "w.*"), ("last", "w.*")])
    do(reader.unsubscribe_all)


def filters():
    reader = client("reader", filter="meta.color == 'red' && data.n > 1")
    writer = client("writer")
    listener = listening(reader, ["f"])
    for number, color in enumerate(["red", "blue", "red", "red"]):
        writer.publish().channel("f").message({"n": number}).meta({"color": color}).sync()
    check("filtered", listener.wait(lambda: len(listener.messages) >= 2), listener.texts())
    equal("only what is true", [m.message["n"] for m in listener.messages], [2, 3])
    do(reader.unsubscribe_all)


def history():
    writer = client("writer")
    places = [int(writer.publish().channel("h").message({"n": n}).meta({"m": n}).sync().result.timetoken)
              for n in range(7)]
    writer.publish().channel("h2").message("other").custom_message_type("kind").sync()

    def numbers(result):
        return [m.entry["n"] for m in result.messages]

    result = writer.history().channel("h").count(3).sync().result
    equal("newest first page", numbers(result), [4, 5, 6])
    equal("bounds", (int(result.start_timetoken), int(result.end_timetoken)), (places[4], places[6]))
    equal("older page", numbers(writer.history().channel("h").count(3).start(places[4]).sync().result),
          [1, 2, 3])
    equal("from the oldest", numbers(writer.history().channel("h").count(2).reverse(True).sync().result),
          [0, 1])
    equal("between", numbers(writer.history().channel("h").start(places[5]).end(places[2]).sync().result),
          [2, 3, 4])
    equal("empty", writer.history().channel("none").sync().result.messages, [])
    fetched = writer.fetch_messages().channels(["h", "h2", "none"]).include_meta(True).include_uuid(True) \
        .include_message_type(True).include_custom_message_type(True).sync().result.channels
    equal("fetch of several", sorted((c, len(m)) for c, m in fetched.items()), [("h", 7), ("h2", 1)])
    equal("fetched meta", fetched["h"][3].meta, {"m": 3})
    check("timetokens are texts", all(str(m.timetoken).isdigit() for m in fetched["h"]))
    equal("fetch between", [m.message["n"] for m in writer.fetch_messages().channels(["h"])
          .start(places[5]).end(places[2]).sync().result.channels["h"]], [2, 3, 4])
    counts = writer.message_counts().channel("h").channel_timetokens([places[3]]).sync().result.channels
    equal("counts", counts, {"h": 3})
    counts = writer.message_counts().channel(["h", "h2"]).channel_timetokens([places[5], places[0]]) \
        .sync().result.channels
    equal("counts of several", counts, {"h": 1, "h2": 1})


def deletion():
    """With the secret key, which gives the right to delete."""
    writer = client("writer")
    places = [int(writer.publish().channel("d").message(n).sync().result.timetoken) for n in range(6)]
    writer.delete_messages().channel("d").start(places[4]).end(places[2]).sync()
    equal("start is exclusive, end inclusive",
          [m.entry for m in writer.history().channel("d").sync().result.messages], [0, 1, 4, 5])
    writer.delete_messages().channel("d").sync()
    equal("all", writer.history().channel("d").sync().result.messages, [])


def encryption():
    """Reads the channel "ours", which another implementation has filled with `values`, and fills "theirs"."""
    user = decrypts()
    if given["form"] != "aesCBC":
        # The SDK's version 2 of history knows no crypto module.
        old = client("old", module=False).history().channel("ours").sync().result.messages
        equal("decrypted in history of version 2", [m.entry for m in old], json.loads(given["values"]))
    encrypts(user)
    do(user.unsubscribe_all)


def decrypts():
    """Reads the channel "ours", which another implementation fills with `values`, as subscriber and in history."""
    values, user = json.loads(given["values"]), client("user")
    listener = listening(user, ["ours"], place=1)
    check("all arrive", listener.wait(lambda: len(listener.messages) >= len(values)), listener.texts())
    equal("decrypted by the subscriber", listener.texts(), values)
    fetched = user.fetch_messages().channels(["ours"]).decrypt_messages().sync().result.channels["ours"]
    equal("decrypted in history", [m.message for m in fetched], values)
    return user


def encrypts(user=None):
    """Fills the channel "theirs" with `values`."""
    user = user or client("user")
    for value in json.loads(given["values"]):
        user.publish().channel("theirs").message(value).use_post(len(str(value)) > 1000).sync()
    check("all are published", True)


def unread():
    """Reads the channel "ours", which another implementation fills in a form that the SDK does not know."""
    count, user = len(json.loads(given["values"])), client("user")
    listener = listening(user, ["ours"], place=1)
    check("all arrive", listener.wait(lambda: len(listener.messages) >= count), listener.texts())
    fetched = user.fetch_messages().channels(["ours"]).decrypt_messages().sync().result.channels["ours"]
    plain = client("plain", cipher=None).fetch_messages().channels(["ours"]).sync().result.channels["ours"]
    stored = [m.message for m in plain]
    check("all are stored as texts of base64", len([base64.b64decode(t, validate=True) for t in stored]) == count)
    equal("handed over unread by the subscriber", listener.texts(), stored)
    equal("handed over unread in history", [m.message for m in fetched], stored)
    for what, messages in [("subscriber", listener.messages), ("history", fetched)]:
        check(f"the {what} has the reason", all("unknown cryptor" in str(m.error) for m in messages),
              [str(m.error) for m in messages])


def unavailable():
    pubnub = client("user")
    calls = {
        "Objects": lambda: pubnub.get_all_channel_metadata().sync(),
        "Files": lambda: pubnub.list_files().channel("c").sync(),
        "Message actions": lambda: pubnub.get_message_actions().channel("c").sync(),
        "Push": lambda: pubnub.list_push_channels().device_id("d").push_type(
            __import__("pubnub.enums", fromlist=["PNPushType"]).PNPushType.APNS).sync(),
    }
    for name, call in calls.items():
        refused(f"{name} says so", call, 403, f"{name} is not available on this server")


def access():
    """A closed application: grants, tokens, revocation. Needs the secret key."""
    admin = client("admin")
    plain = client("user", secret=None)
    keyed = client("user", secret=None, auth="my auth+key")
    refused("no grant: publish", lambda: plain.publish().channel("a").message(1).sync(), 403, "Forbidden")
    refused("no grant: history", lambda: plain.history().channel("a").sync(), 403)
    refused("no grant: here-now", lambda: plain.here_now().channels(["a"]).sync(), 403)
    refused("no grant: groups", lambda: plain.list_channels_in_channel_group().channel_group("g").sync(), 403)
    refused("no grant: grant", lambda: client("user", secret="sec-c-wrong").grant().channels("a")
            .read(True).sync(), 403)
    admin.publish().channel("a").message("signed").sync()
    granted = admin.grant().channels(["a"]).auth_keys(["my auth+key"]).read(True).write(True).ttl(5).sync().result
    equal("grant", (granted.level, granted.ttl), ("user", 5))
    keyed.publish().channel("a").message("keyed").sync()
    check("publish with an auth key", True)
    refused("other channel", lambda: keyed.publish().channel("b").message(1).sync(), 403)
    equal("history with an auth key", [m.entry for m in keyed.history().channel("a").sync().result.messages],
          ["signed", "keyed"])
    audited = admin.audit().channels(["a"]).auth_keys(["my auth+key"]).sync().result
    check("audit", audited is not None)
    listener = listening(keyed, ["a"])
    admin.grant().channels(["a"]).auth_keys(["my auth+key"]).read(False).write(False).sync()
    check("revocation ends an open poll", listener.wait_denied(),
        [s.category for s in listener.statuses])
    refused("revoked", lambda: keyed.publish().channel("a").message(1).sync(), 403)
    admin.grant().channels(["w.*"]).read(True).write(True).sync()
    plain.publish().channel("w.x").message("by pattern").sync()
    check("a grant on a pattern", True)
    admin.grant().channel_groups([":"]).read(True).manage(True).sync()
    plain.add_channel_to_channel_group().channels(["w.x"]).channel_group("g").sync()
    equal("a grant on all groups", plain.list_channels_in_channel_group().channel_group("g").sync()
          .result.channels, ["w.x"])
    token = admin.grant_token().ttl(15).authorized_uuid("bearer").channels(
        [Channel.id("t").read().write(), Channel.pattern("^t\\.[0-9]+$").read().write()]).groups(
        [Group.id("g").read()]).sync().result.get_token()
    bearer = client("bearer", secret=None, token=token)
    bearer.publish().channel("t").message("token").sync()
    bearer.publish().channel("t.17").message("token").sync()
    check("a token allows", True)
    refused("a token does not allow", lambda: bearer.publish().channel("t.x").message(1).sync(), 403)
    other = client("other", secret=None, token=token)
    refused("another user's token", lambda: other.publish().channel("t").message(1).sync(), 403)
    bent = token[:-6] + ("A" if token[-6] != "A" else "B") + token[-5:]
    refused("a changed token", lambda: client("bearer", secret=None, token=bent).publish().channel("t")
            .message(1).sync(), 403)
    listener = listening(bearer, ["t"])
    admin.revoke_token(token).sync()
    check("a revoked token ends an open poll", listener.wait_denied(),
        [s.category for s in listener.statuses])
    refused("a revoked token", lambda: bearer.publish().channel("t").message(1).sync(), 403,
            "Token is revoked")


def secure():
    """Over TLS, with a private authority in SSL_CERT_FILE."""
    line()


run(globals()[sys.argv[1]])
