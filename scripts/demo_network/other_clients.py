"""The stock clients of Pusher and STOMP, unchanged, and what they were given."""
import json, threading, time

import pysher
import stomp

from demo_network.clients import CHANNELS
from demo_network.comparison import job_of


class PusherReceived:
    """What a Pusher client got, in its order, by channel. It subscribes again whenever it is connected."""

    def __init__(self, name, keys, origin, token):
        self.name, self.token = name, token
        self.events, self.joined, self.refused = {channel: [] for channel in CHANNELS}, set(), {}
        host, port = origin.rsplit(":", 1)
        self.pusher = pysher.Pusher(
            keys["subscribeKey"], custom_host=host, port=int(port), secure=False, reconnect_interval=1)
        self.pusher.connection.bind("pusher:connection_established", self.subscribe)
        self.pusher.connect()

    def subscribe(self, _):
        for name in CHANNELS:
            channel = self.pusher.subscribe(name, self.token)
            channel.bind("message", self.keep, name)
            channel.bind("pusher_internal:subscription_succeeded", lambda _, name=name: self.joined.add(name))
            channel.bind("pusher:subscription_error", lambda data, name=name: self.refused.update({name: json.loads(data)}))

    def keep(self, data, name):
        self.events[name].append(json.loads(data))

    def count(self):
        return sum(len(events) for events in self.events.values())


class Jobs:
    """What all workers did. A job is a message of either channel."""

    def __init__(self):
        self.changed = threading.Lock()
        self.delivered, self.done, self.repeated = {}, set(), []
        # Acknowledged on a connection that was lost before the receipt: stored or not, then they come again.
        self.unknown = set()
        # While the workers hold, they keep what they have leased.
        self.isHolding, self.held = False, 0


class Worker(stomp.ConnectionListener):
    """One connection of a worker, which acknowledges each job with a receipt."""

    def __init__(self, jobs, keys, address, key):
        self.jobs, self.ended, self.waiting = jobs, threading.Event(), {}
        host, port = address.rsplit(":", 1)
        self.connection = stomp.StompConnection12([(host, int(port))], vhost=keys["name"], reconnect_attempts_max=1)
        self.connection.set_listener("", self)
        self.connection.connect(keys["publishKey"], key, wait=True)
        for number, channel in enumerate(CHANNELS):
            self.connection.subscribe(f"/queue/{channel}", id=str(number), ack="client-individual")

    @classmethod
    def start(cls, *arguments):
        threading.Thread(target=cls.again_and_again, args=arguments, daemon=True).start()

    @classmethod
    def again_and_again(cls, jobs, *arguments):
        while True:
            worker = None
            try:
                worker = cls(jobs, *arguments)
                worker.ended.wait()
            except Exception:
                pass  # The server is away or sealed.
            if worker:
                with jobs.changed:
                    jobs.unknown |= set(worker.waiting.values())
                # A lost connection must not hold leases beside the next.
                worker.connection.transport.disconnect_socket()
            time.sleep(0.2)

    def on_message(self, frame):
        job = job_of(json.loads(frame.body))
        with self.jobs.changed:
            if job in self.jobs.done:
                self.jobs.repeated.append(job)
            self.jobs.delivered[job] = self.jobs.delivered.get(job, 0) + 1
            self.jobs.unknown.discard(job)
            if self.jobs.isHolding:
                self.jobs.held += 1
                return
            receipt = "-".join(map(str, job))
            self.waiting[receipt] = job
        try:
            self.connection.ack(frame.headers["ack"], receipt=receipt)
        except Exception:
            self.ended.set()

    def on_receipt(self, frame):
        with self.jobs.changed:
            self.jobs.done.add(self.waiting.pop(frame.headers["receipt-id"]))

    def on_error(self, frame):
        self.ended.set()

    def on_disconnected(self):
        self.ended.set()


def refusal_of(keys, address, token):
    """The error that a STOMP client with this token gets for a subscription to a topic."""
    errors, ended = [], threading.Event()

    class Listener(stomp.ConnectionListener):
        def on_error(self, frame):
            errors.append(frame.headers.get("message"))

        def on_disconnected(self):
            ended.set()

    host, port = address.rsplit(":", 1)
    connection = stomp.StompConnection12([(host, int(port))], vhost=keys["name"], reconnect_attempts_max=1)
    connection.set_listener("", Listener())
    try:
        connection.connect(keys["publishKey"], token, wait=True)
        connection.subscribe(f"/topic/{CHANNELS[0]}", id="1")
    except stomp.exception.StompException:
        pass  # It says why in the frame.
    ended.wait(10)
    return errors[0] if errors else None
