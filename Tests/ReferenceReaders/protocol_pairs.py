#!/usr/bin/env python3
"""Publishes with the stock client of each protocol, and receives with the stock clients of all: the nine pairs.

    protocol_pairs.py HOST:PORT STOMP_HOST:PORT NAME=VALUE ...

Names: app, id, pub, sub, secret. Needs pubnub, pusher, pysher and stomp.py in one interpreter. Prints one line for each
check: "ok WHAT" or "not ok WHAT: WHY". FORMS is the table of docs/reference/protocols.md.
"""
import base64, logging, sys, threading

import pusher
import pysher
import stomp
from pubnub.callbacks import SubscribeCallback
from pubnub.enums import PNStatusCategory
from pubnub.pnconfiguration import PNConfiguration
from pubnub.pubnub import PubNub

from scenario_checks import check, equal, run

logging.disable(logging.CRITICAL)
origin = sys.argv[1]
(host, port), (stomp_host, stomp_port) = (address.rsplit(":", 1) for address in sys.argv[1:3])
given = dict(pair.split("=", 1) for pair in sys.argv[3:])
JSON, TEXT, BYTES = '{"n": 1, "text": "é"}', 'not JSON: "é', b"\xff\x00\xfe"


class Kept:
    """What one subscriber got, in its order, for tests that wait for it."""

    def __init__(self):
        self.changed = threading.Condition()
        self.messages, self.others = [], []

    def add(self, kept, what):
        with self.changed:
            kept.append(what)
            self.changed.notify_all()

    def wait(self, condition, seconds=120):
        with self.changed:
            return self.changed.wait_for(condition, seconds)


# MARK: - The three stock clients as subscribers


class PubNubSubscriber(Kept, SubscribeCallback):
    """Keeps of messages: the value, the meta, the publisher and the custom type. Of signals: the value."""

    def __init__(self, name, channel):
        super().__init__()
        self.isConnected, self.presences = False, []
        self.client = pubnub(name)
        self.client.add_listener(self)
        self.client.subscribe().channels([channel]).with_presence().execute()
        check(f"PubNub subscribes to {channel}", self.wait(lambda: self.isConnected))

    def status(self, _, status):
        with self.changed:
            self.isConnected |= status.category == PNStatusCategory.PNConnectedCategory
            self.changed.notify_all()

    def message(self, _, event):
        self.add(self.messages, (event.message, event.user_metadata, event.publisher, event.custom_message_type))

    def signal(self, _, event):
        self.add(self.others, event.message)

    def presence(self, _, event):
        self.add(self.presences, (event.event, event.uuid))


class PusherSubscriber(Kept):
    """Keeps of events: the name and the data. Of the protocol's own events: the name."""

    def __init__(self, channel, user=None):
        super().__init__()
        self.client = pysher.Pusher(
            given["sub"], custom_host=host, port=int(port), secure=False, secret=given["secret"], user_data=user)
        self.isConnected = False
        self.client.connection.bind("pusher:connection_established", self.connected)
        # The event's channel binds names; this keeps all.
        self.client.connection.event_handler = self.take
        self.client.connect()
        check("Pusher connects", self.wait(lambda: self.isConnected))
        self.channel = self.client.subscribe(channel)
        check(f"Pusher subscribes to {channel}",
              self.wait(lambda: "pusher_internal:subscription_succeeded" in self.others), self.others)

    def connected(self, _):
        with self.changed:
            self.isConnected = True
            self.changed.notify_all()

    def take(self, name, data, _):
        self.add(*((self.others, name) if name.startswith("pusher") else (self.messages, (name, data))))


class STOMPClient(Kept, stomp.ConnectionListener):
    """Keeps of messages: the body as bytes, and the headers but those of its delivery."""

    OWN = {"destination", "subscription", "message-id", "content-length", "ack", "datavault-attempt"}

    def __init__(self, destination=None):
        super().__init__()
        self.receipts, self.errors = [], []
        self.connection = stomp.StompConnection12(
            [(stomp_host, int(stomp_port))], vhost=given["app"], auto_decode=False)
        self.connection.set_listener("", self)
        self.connection.connect(given["pub"], given["secret"], wait=True)
        if destination:
            self.receipt(lambda name: self.connection.subscribe(
                destination, id="1", ack="auto" if destination.startswith("/topic") else "client", receipt=name))

    def on_message(self, frame):
        self.add(self.messages, (frame.body, {k: v for k, v in frame.headers.items() if k not in self.OWN}))
        if "ack" in frame.headers:
            self.connection.ack(frame.headers["ack"])

    def on_receipt(self, frame):
        self.add(self.receipts, frame.headers["receipt-id"])

    def on_error(self, frame):
        self.add(self.errors, frame.headers)

    def receipt(self, act):
        name = f"r{len(self.receipts)}"
        act(name)
        check(f"receipt {name}", self.wait(lambda: name in self.receipts), self.errors)

    def send(self, body, content_type=None, destination="/topic/orders", **headers):
        self.receipt(lambda name: self.connection.send(destination, body, content_type, headers=headers, receipt=name))


def pubnub(name):
    config = PNConfiguration()
    config.publish_key, config.subscribe_key, config.secret_key = given["pub"], given["sub"], given["secret"]
    config.uuid, config.origin, config.ssl, config.daemon = name, origin, False, True
    return PubNub(config)


def server():
    return pusher.Pusher(
        app_id=given["id"], key=given["sub"], secret=given["secret"], host=host, port=int(port), ssl=False, timeout=120)


# MARK: - The table: what each protocol publishes, and the form in which it arrives


VALUE = {"n": 1, "text": "é"}
NO_META = None
PUBLISH = {
    "PubNub": [
        lambda: pubnub("ann").publish().channel("orders").message(VALUE).meta({"colour": "red"})
        .custom_message_type("new-order").sync(),
        lambda: pubnub("ann").publish().channel("orders").message(TEXT).use_post(True).sync(),
    ],
    "Pusher": [
        lambda: server().trigger("orders", "created", VALUE),
        lambda: server().trigger("orders", "noted", TEXT),
    ],
    "STOMP": [
        lambda: STOMPClient().send(JSON, "application/json", colour="red"),
        lambda: STOMPClient().send(TEXT, "text/plain", priority="4"),
        lambda: STOMPClient().send(BYTES),
    ],
}
# PubNub's SDK escapes é in its JSON, Pusher's does not: the payload stays as it came.
PUBNUB_JSON, PUBNUB_TEXT = b'{"n": 1, "text": "\\u00e9"}', b'"not JSON: \\"\\u00e9"'
ann = {"datavault-publisher": "ann", "content-type": "application/json"}
FORMS = {
    ("PubNub", "PubNub"): [
        (VALUE, {"colour": "red"}, "ann", "new-order"), (TEXT, NO_META, "ann", None)],
    ("PubNub", "Pusher"): [("message", PUBNUB_JSON.decode()), ("message", PUBNUB_TEXT.decode())],
    ("PubNub", "STOMP"): [
        (PUBNUB_JSON, {**ann, "datavault-meta": '{"colour": "red"}', "datavault-type": "new-order"}),
        (PUBNUB_TEXT, ann)],
    ("Pusher", "PubNub"): [(VALUE, NO_META, None, None), (TEXT, NO_META, None, None)],
    ("Pusher", "Pusher"): [("created", JSON), ("noted", TEXT)],
    ("Pusher", "STOMP"): [
        (JSON.encode(), {"datavault-event": "created", "content-type": "application/json"}),
        (TEXT.encode(), {"datavault-event": "noted", "content-type": "text/plain;charset=utf-8"})],
    ("STOMP", "PubNub"): [
        (VALUE, NO_META, None, None), (TEXT, NO_META, None, None),
        (base64.b64encode(BYTES).decode(), {"content-encoding": "base64"}, None, None)],
    ("STOMP", "Pusher"): [
        ("message", JSON), ("message", TEXT), ("message", base64.b64encode(BYTES).decode())],
    ("STOMP", "STOMP"): [
        (JSON.encode(), {"content-type": "application/json", "colour": "red"}),
        (TEXT.encode(), {"content-type": "text/plain", "priority": "4"}),
        (BYTES, {"content-type": "application/octet-stream"})],
}


def pairs():
    subscribers = {
        "PubNub": [PubNubSubscriber("reader", "orders")], "Pusher": [PusherSubscriber("orders")],
        # A topic, and the leases of a consumer.
        "STOMP": [STOMPClient("/topic/orders"), STOMPClient("/queue/orders")]}
    for publisher, acts in PUBLISH.items():
        for act in acts:
            act()
        for subscriber, clients in subscribers.items():
            wanted = FORMS[publisher, subscriber]
            for client in clients:
                client.wait(lambda: len(client.messages) >= len(wanted))
                equal(f"{publisher} to {subscriber}", client.messages, wanted)
                client.messages = []
    kept = pubnub("reader").fetch_messages().channels(["orders"]).include_meta(True).sync().result.channels["orders"]
    equal("history has the same forms", [(m.message, m.meta or None) for m in kept],
          [form[:2] for publisher in PUBLISH for form in FORMS[publisher, "PubNub"]])
    kept = pubnub("reader").history().channel("orders").include_meta(True).sync().result.messages
    equal("so has version 2 of history", [(m.entry, m.meta or None) for m in kept],
          [form[:2] for publisher in PUBLISH for form in FORMS[publisher, "PubNub"]])


def ephemeral():
    """A signal and a client event cross, and are stored nowhere. Presence does not cross."""
    name = "presence-room"
    one = PusherSubscriber(name, {"user_id": "u1"})
    watcher = PusherSubscriber(f"{name}-pnpres", {"user_id": "w"})
    reader = PubNubSubscriber("reader", name)
    two = PusherSubscriber(name, {"user_id": "u2"})
    topic, queue = STOMPClient(f"/topic/{name}"), STOMPClient(f"/queue/{name}")
    check("Pusher's presence", one.wait(lambda: "pusher_internal:member_added" in one.others), one.others)
    check("PubNub's presence", reader.wait(lambda: ("join", "reader") in reader.presences), reader.presences)
    pubnub("ann").signal().channel(name).message("typing").sync()
    one.wait(lambda: one.messages)
    two.channel.trigger("client-move", "e4")
    one.wait(lambda: len(one.messages) >= 2)
    pubnub("ann").publish().channel(name).message("last").sync()
    for client in (one, two, reader, topic, queue):
        check("the last message", client.wait(lambda: any("last" in str(m) for m in client.messages)), client.messages)
    equal("a signal and a client event reach Pusher", one.messages,
          [("message", '"typing"'), ("client-move", "e4"), ("message", '"last"')])
    equal("a client event does not come back", two.messages, [("message", '"typing"'), ("message", '"last"')])
    equal("they reach PubNub as signals", reader.others, ["typing", "e4"])
    equal("they reach a topic", [(body, headers.get("datavault-event"), headers.get("datavault-publisher"))
                                 for body, headers in topic.messages],
          [(b'"typing"', None, "ann"), (b"e4", "client-move", "u2"), (b'"last"', None, "ann")])
    equal("they are not leased", [body for body, _ in queue.messages], [b'"last"'])
    equal("nor in history", [m.message for m in pubnub("reader").fetch_messages().channels([name]).sync()
                             .result.channels[name]], ["last"])
    equal("PubNub sees its own presence alone", {user for _, user in reader.presences}, {"reader"})
    here = pubnub("reader").here_now().channels([name]).sync().result.channels[0].occupants
    equal("here-now too", [occupant.uuid for occupant in here], ["reader"])
    equal("Pusher sees its own presence alone", one.others.count("pusher_internal:member_added"), 1)
    equal("nor on PubNub's presence channel", watcher.messages, [])
    equal("its users too", server().users_info(name), {"users": [{"id": "u1"}, {"id": "u2"}]})


def excluded():
    """The connection that a Pusher server excludes is one of Pusher: all others get the event."""
    sender, other = PusherSubscriber("moves"), PusherSubscriber("moves")
    reader, topic = PubNubSubscriber("reader", "moves"), STOMPClient("/topic/moves")
    server().trigger("moves", "moved", "e4", sender.client.connection.socket_id)
    server().trigger("moves", "moved", "e5")
    for client in (sender, other, reader, topic):
        client.wait(lambda: any("e5" in str(m) for m in client.messages))
    equal("the sender gets the others' events", sender.messages, [("moved", "e5")])
    equal("Pusher's others get all", other.messages, [("moved", "e4"), ("moved", "e5")])
    equal("PubNub gets all", [m[0] for m in reader.messages], ["e4", "e5"])
    equal("STOMP gets all", [body for body, _ in topic.messages], [b"e4", b"e5"])


def large():
    """A message that is larger than another protocol lets its own clients publish is delivered whole."""
    reader, events, body = PubNubSubscriber("reader", "large"), PusherSubscriber("large"), "é" * 120_000
    STOMPClient().send(body, "text/plain", "/queue/large")
    for client in (reader, events):
        client.wait(lambda: client.messages)
    check("PubNub gets all of a large message", [m[0] for m in reader.messages] == [body])
    check("Pusher gets all of a large message", events.messages == [("message", body)])


def scenarios():
    pairs()
    ephemeral()
    excluded()
    large()


run(scenarios)
