#!/usr/bin/env python3
"""Prints the data of each message of a channel, one a line, as a stock Pusher client gets it that reconnects by itself.

    pusher_listener.py HOST PORT KEY CHANNEL
"""
import logging, sys, threading

import pysher

host, port, key, name = sys.argv[1:]
# It reports each attempt to reconnect.
logging.disable(logging.CRITICAL)
client = pysher.Pusher(
    key, custom_host=host, port=int(port), secure=False, reconnect_interval=0.05, auto_sub=True)


def established(data):
    # Its own handler subscribes again after a reconnect.
    if name not in client.channels:
        client.subscribe(name).bind("message", lambda data: print(data, flush=True))


client.connection.bind("pusher:connection_established", established)
client.connect()
threading.Event().wait()
