"""The stock clients of PubNub, unchanged, and what they were given."""
import asyncio, threading, time

from pubnub.callbacks import SubscribeCallback
from pubnub.enums import PNReconnectionPolicy, PNStatusCategory
from pubnub.exceptions import PubNubException
from pubnub.pnconfiguration import PNConfiguration
from pubnub.pubnub import PubNub
from pubnub.pubnub_asyncio import PubNubAsyncio

from demo_network.report import Failure, require, say

CHANNELS = ["lines.even", "lines.odd"]


def configuration(keys, origin, uuid, **changes):
    config = PNConfiguration()
    config.publish_key, config.subscribe_key = keys["publishKey"], keys["subscribeKey"]
    config.uuid, config.origin, config.ssl, config.daemon = uuid, origin, False, True
    # The SDK's default gives up after six tries.
    config.reconnect_policy, config.maximum_reconnection_retries = PNReconnectionPolicy.LINEAR, -1
    config.reconnection_interval, config.non_subscribe_request_timeout = 0.1, 5
    for name, value in changes.items():
        setattr(config, name, value)
    return config


class Received(SubscribeCallback):
    """What a subscriber got, in its order: timetoken, channel, message."""

    def __init__(self, name):
        self.name, self.events, self.isConnected, self.isRefused = name, [], False, False

    def message(self, pubnub, message):
        self.events.append((int(message.timetoken), message.channel, message.message))

    def status(self, pubnub, status):
        self.isConnected |= status.category == PNStatusCategory.PNConnectedCategory
        self.isRefused |= status.category == PNStatusCategory.PNAccessDeniedCategory

    def presence(self, pubnub, presence):
        pass


def subscribe_with_threads(config, token, name, channels):
    pubnub, received = PubNub(config), Received(name)
    pubnub.set_token(token)
    pubnub.add_listener(received)
    pubnub.subscribe().channels(channels).execute()
    return received


def subscribe_with_asyncio(config, token, name, group):
    received = Received(name)

    async def run():
        pubnub = PubNubAsyncio(config)
        pubnub.set_token(token)
        pubnub.add_listener(received)
        pubnub.subscribe().channel_groups([group]).execute()
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    return received


class Publication:
    """Publishers that share the lines.

    A publish that fails is repeated, so a line can be stored more than once: `attempt` tells its messages apart.
    """

    def __init__(self, configs, lines):
        self.lines, self.next, self.lock = lines, 0, threading.Lock()
        self.acknowledged, self.failures, self.limit = {}, 0, 0
        self.threads = [threading.Thread(target=self.publish, args=(c,), daemon=True) for c in configs]
        for thread in self.threads:
            thread.start()

    def take(self):
        with self.lock:
            if self.next == len(self.lines):
                return None
            self.next += 1
            return self.next - 1

    def publish(self, config):
        pubnub = PubNub(config)
        while (number := self.take()) is not None:
            while number >= self.limit:  # a pause of the story
                time.sleep(0.01)
            message = {"number": number, "attempt": 1, "line": self.lines[number]}
            while True:
                try:
                    call = pubnub.publish().channel(CHANNELS[number % 2]).use_post(number % 3 == 0).message(message)
                    self.acknowledged[int(call.sync().result.timetoken)] = number
                    break
                except PubNubException:
                    self.failures += 1
                    message["attempt"] += 1
                    time.sleep(0.1)


def history(pubnub):
    """Everything that is stored: timetoken, channel, message, in the order of the log."""
    stored = []
    for channel in CHANNELS:
        start = None
        while True:
            call = pubnub.fetch_messages().channels([channel]).maximum_per_channel(100)
            page = (call.start(start) if start else call).sync().result.channels.get(channel, [])
            stored += [(int(m.timetoken), channel, m.message) for m in page]
            if len(page) < 100:
                break
            start = min(int(m.timetoken) for m in page)
    return sorted(stored, key=lambda event: event[0])


def refused(what, call, text):
    try:
        call()
    except PubNubException as error:
        require(getattr(error, "_status_code", None) == 403 and text in str(error), f"{what}: {error}")
        return say(f"{what}: 403 {text}")
    raise Failure(f"{what} was allowed")
