#!/usr/bin/env python3
"""Checks requests that a message server has sent, with Pusher's stock package for servers, unchanged.

    pusher_webhook.py < REQUESTS

REQUESTS is a line of JSON for each: key, secret, and what came: header_key, signature, body. Prints a line of JSON for
each: what the package makes of the body, or null if it refuses it.
"""
import json, sys

import pusher

for line in sys.stdin:
    request = json.loads(line)
    receiver = pusher.Pusher(app_id="1", key=request["key"], secret=request["secret"])
    found = receiver.validate_webhook(request["header_key"], request["signature"], request["body"])
    print(json.dumps(found, separators=(",", ":"), ensure_ascii=False))
