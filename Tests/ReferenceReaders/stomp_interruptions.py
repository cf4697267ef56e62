#!/usr/bin/env python3
"""Kills a message server with -9 again and again while stock STOMP clients publish and work, and Pusher clients listen.

    stomp_interruptions.py DATAVAULTD HOME COUNT [PYTHON]     PYTHON has pysher; without it, no one listens

Prints the totals as one JSON object: messages whose receipt came, how many of them no worker got, how many were delivered
again after the receipt of their acknowledgement, and the seconds from the last start to the last acknowledgement. Of the
Pusher clients: how many listen, the kills after which one did not come back, the messages that the one with the fewest
got, and how many messages one got twice or out of order.
"""
import atexit, json, os, random, signal, socket, subprocess, sys, threading, time

import stomp

executable, home, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
listener_python = sys.argv[4] if len(sys.argv) > 4 else None


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


port, http = free_port(), free_port()
keys = json.loads(subprocess.run(
    [executable, "app", "add", "kills", "--open", "--json", "--home", home], check=True, stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL).stdout)


def start():
    server = subprocess.Popen(
        [executable, "serve", "--home", home, "--listen", f"127.0.0.1:{http}", "--stomp-listen", f"127.0.0.1:{port}"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for _ in range(2):
        server.stdout.readline()
    return server


state, stop = threading.Condition(), threading.Event()
published, done, delivered, repeated = set(), set(), set(), []
# Acknowledged on a connection that was lost before the receipt: done or not, then they come again.
unknown = set()


class Peer(stomp.ConnectionListener):
    """One connection; each has a listener of its own, because what an old one reports is not about the next."""

    def __init__(self):
        self.ended, self.waiting = threading.Event(), set()
        self.connection = stomp.StompConnection12([("127.0.0.1", port)], vhost="kills", reconnect_attempts_max=1)
        self.connection.set_listener("", self)
        try:
            self.connection.connect(keys["publishKey"], keys["secretKey"], wait=True)
        except Exception:
            self.ended.set()

    def on_disconnected(self):
        self.ended.set()

    def on_error(self, frame):
        self.ended.set()

    @classmethod
    def again_and_again(kind, number):
        while not stop.is_set():
            peer = kind()
            try:
                if not peer.ended.is_set():
                    peer.work(number)
            except Exception:
                pass
            with state:
                unknown.update(peer.waiting)
            # An old connection must not hold leases beside the next.
            peer.connection.transport.disconnect_socket()
            time.sleep(0.05)


class Publisher(Peer):
    count = 0

    def on_receipt(self, frame):
        with state:
            published.add(frame.headers["receipt-id"])

    def work(self, number):
        while not self.ended.is_set():
            with state:
                Publisher.count += 1
                name = f"{number}-{Publisher.count}"
            # Without a receipt it can be stored or not. The next one has another name.
            self.connection.send("/queue/jobs", name, receipt=name)
            time.sleep(0.01)


class Worker(Peer):
    def on_message(self, frame):
        with state:
            if frame.body in done:
                repeated.append(frame.body)
            delivered.add(frame.body)
            unknown.discard(frame.body)
            self.waiting.add(frame.body)
        try:
            self.connection.ack(frame.headers["ack"], receipt=frame.body)
        except Exception:
            self.ended.set()

    def on_receipt(self, frame):
        with state:
            if frame.headers["receipt-id"] != "subscribed":
                done.add(frame.headers["receipt-id"])
                self.waiting.discard(frame.headers["receipt-id"])

    def work(self, number):
        self.connection.subscribe(
            "/queue/jobs", id="1", ack="client-individual", receipt="subscribed",
            headers={"prefetch-count": str([1, 5, 20][number])})
        self.ended.wait()


class Listener:
    """A stock Pusher client: it gets what passes while it is connected, each message once."""

    def __init__(self):
        self.names = []
        self.process = subprocess.Popen(
            [listener_python, "-W", "ignore", os.path.join(os.path.dirname(__file__), "pusher_listener.py"),
             "127.0.0.1", str(http), keys["subscribeKey"], "jobs"], stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with state:
                self.names.append(line.strip())

    @property
    def repeated(self):
        return len(self.names) - len(set(self.names))

    @property
    def unordered(self):
        # Each publisher counts up.
        last, found = {}, 0
        for name in self.names:
            publisher, number = name.split("-")
            found += last.get(publisher, 0) > int(number)
            last[publisher] = max(last.get(publisher, 0), int(number))
        return found


server = start()
atexit.register(lambda: server.kill())
for kind, number in [(Publisher, 0), (Publisher, 1), (Worker, 0), (Worker, 1), (Worker, 2)]:
    threading.Thread(target=kind.again_and_again, args=(number,), daemon=True).start()
listeners = [Listener() for _ in range(2 if listener_python else 0)]
interruptions, absent = 0, 0


def wait_for_listeners(seconds):
    """Waits until each listener gets what is published now; counts those that do not."""
    global absent
    with state:
        before = [len(listener.names) for listener in listeners]
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        with state:
            if all(len(listener.names) > count for listener, count in zip(listeners, before)):
                return
        time.sleep(0.01)
    absent += 1


for _ in range(count):
    # Each interruption meets a server that serves and has leases out.
    with state:
        before = len(done)
    limit = time.monotonic() + 60
    while len(done) < before + 20:
        if time.monotonic() > limit:
            sys.exit(f"nothing is done after {interruptions} interruptions")
        time.sleep(0.01)
    wait_for_listeners(20)
    time.sleep(random.random() / 5)
    server.send_signal(signal.SIGKILL)
    server.wait()
    interruptions += 1
    server = start()
started = time.monotonic()
wait_for_listeners(20)
time.sleep(1)
limit = time.monotonic() + 60
# Publishers go on; what has its receipt by now must be done.
with state:
    wanted = set(published)
while time.monotonic() < limit:
    with state:
        # Leases of a killed server end after 30 seconds.
        if wanted <= done | unknown and time.monotonic() > started + 35:
            break
    time.sleep(0.05)
seconds = time.monotonic() - started
with state:
    print(json.dumps({
        "interruptions": interruptions, "acknowledged": len(wanted), "lost": len(wanted - delivered),
        "undone": len(wanted - done - unknown), "repeated": len(repeated), "seconds": round(seconds, 1),
        "listeners": len(listeners), "absent": absent,
        "heard": min((len(listener.names) for listener in listeners), default=0),
        "repeatedEvents": sum(listener.repeated for listener in listeners),
        "unorderedEvents": sum(listener.unordered for listener in listeners)}), flush=True)
for listener in listeners:
    listener.process.kill()
server.kill()
os._exit(0)
