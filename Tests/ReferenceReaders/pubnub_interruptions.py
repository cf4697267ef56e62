#!/usr/bin/env python3
"""Interrupts a message server again and again while stock PubNub clients publish and listen.

    pubnub_interruptions.py kill DATAVAULTD HOME COUNT                        kills it with -9 and starts it again
    pubnub_interruptions.py lock DATAVAULTD HOME COUNT DATAVAULT PASSWORD     locks the vault and unlocks it, with a file

The clients reconnect by themselves. Prints the totals as one JSON object: acknowledged messages, how many of them a
subscriber did not get, how many it got twice, how many came out of order, and how many came or were acknowledged while
the vault was locked.
"""
import atexit, json, os, random, signal, socket, subprocess, sys, threading, time

from pubnub.callbacks import SubscribeCallback
from pubnub.enums import PNReconnectionPolicy, PNStatusCategory
from pubnub.exceptions import PubNubException
from pubnub.pnconfiguration import PNConfiguration
from pubnub.pubnub import PubNub

mode, executable, home, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
password = ["--password-file", sys.argv[6]] if mode == "lock" else []
CHANNELS = ["a", "b", "w.x"]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
keys = json.loads(subprocess.run(
    [executable, "app", "add", "kills", "--open", "--json", "--home", home] + password, check=True,
    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)


def start():
    server = subprocess.Popen(
        [executable, "serve", "--home", home, "--listen", f"127.0.0.1:{port}"] + password,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    server.stdout.readline()
    return server


def client(uuid):
    config = PNConfiguration()
    config.publish_key, config.subscribe_key = keys["publishKey"], keys["subscribeKey"]
    config.uuid, config.origin, config.ssl = uuid, f"127.0.0.1:{port}", False
    config.reconnect_policy = PNReconnectionPolicy.LINEAR
    config.reconnection_interval, config.maximum_reconnection_retries = 0.05, -1
    config.non_subscribe_request_timeout, config.daemon = 5, True
    return PubNub(config)


class Received(SubscribeCallback):
    def __init__(self):
        self.ids, self.places, self.connected = [], [], threading.Event()

    def message(self, pubnub, message):
        self.ids.append(message.message["id"])
        self.places.append(int(message.timetoken))

    def status(self, pubnub, status):
        if status.category == PNStatusCategory.PNConnectedCategory:
            self.connected.set()

    def presence(self, pubnub, presence):
        pass


acknowledged, stop = set(), threading.Event()


def publish(number):
    pubnub, count = client(f"publisher-{number}"), 0
    while not stop.is_set():
        count += 1
        name = f"{number}-{count}"
        try:
            pubnub.publish().channel(random.choice(CHANNELS)).message({"id": name}).sync()
            acknowledged.add(name)
        except PubNubException:
            # Unknown: it can be stored or not. The next one has another name.
            time.sleep(0.02)


server = start()
atexit.register(lambda: server.kill())
subscribers = []
for number, names in enumerate([CHANNELS, CHANNELS, ["a", "b", "w.*"]]):
    pubnub, received = client(f"subscriber-{number}"), Received()
    pubnub.add_listener(received)
    pubnub.subscribe().channels(names).execute()
    subscribers.append((pubnub, received))
# A subscriber gets what is published after its first answer.
for _, received in subscribers:
    if not received.connected.wait(60):
        sys.exit("a subscriber has not connected within 60 seconds")
publishers = [threading.Thread(target=publish, args=(n,), daemon=True) for n in range(3)]
for thread in publishers:
    thread.start()
while_locked = 0


def progress():
    return len(acknowledged) + sum(len(received.ids) for _, received in subscribers)


def kill():
    global server
    server.send_signal(signal.SIGKILL)
    server.wait()
    server = start()


def lock():
    global while_locked
    subprocess.run([sys.argv[5], "lock", "messaging", "--home", home], check=True)
    # What had left the server before the lock still arrives, late on a busy machine.
    before, limit = -1, time.monotonic() + 10
    while before != progress() and time.monotonic() < limit:
        before = progress()
        time.sleep(0.3)
    before = progress()
    time.sleep(0.5)
    while_locked += progress() - before
    subprocess.run([sys.argv[5], "unlock", "messaging", "--home", home] + password, check=True)


for _ in range(count):
    # Each interruption meets a server that serves.
    served, limit = len(acknowledged), time.monotonic() + 60
    while len(acknowledged) < served + 5:
        if time.monotonic() > limit:
            sys.exit(f"the server has acknowledged {len(acknowledged) - served} messages in 60 seconds")
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.3))
    kill() if mode == "kill" else lock()
time.sleep(0.5)
stop.set()
for thread in publishers:
    thread.join(20)
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    if all(acknowledged <= set(received.ids) for _, received in subscribers):
        break
    time.sleep(0.1)
# What was not acknowledged, but stored, can still come.
time.sleep(0.5)
totals = {
    "interruptions": count, "whileLocked": while_locked, "acknowledged": len(acknowledged),
    "lost": max(len(acknowledged - set(received.ids)) for _, received in subscribers),
    "repeated": max(len(received.ids) - len(set(received.ids)) for _, received in subscribers),
    "unordered": max(sum(a >= b for a, b in zip(received.places, received.places[1:]))
                     for _, received in subscribers)}
server.kill()
print(json.dumps(totals), flush=True)
os._exit(0 if not sum(totals[name] for name in ("lost", "repeated", "unordered", "whileLocked")) else 1)
