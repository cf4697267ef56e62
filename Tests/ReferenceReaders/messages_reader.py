#!/usr/bin/env python3
"""Reads an export of messages, written only from docs/reference/message-export.md, and prints one JSON object.

    messages_reader.py FILE
"""
import base64, hashlib, json, sys


def unique(pairs):
    members = dict(pairs)
    assert len(members) == len(pairs), "a member appears twice"
    return members


data = open(sys.argv[1], "rb").read()
assert data.endswith(b"\n"), "the last line has no newline"
lines = data[:-1].split(b"\n")
records = [json.loads(line.decode("utf-8"), object_pairs_hook=unique) for line in lines]
assert all(next(iter(record)) == "record" for record in records), "record is not the first member"
first, last = records[0], records[-1]
assert first["record"] == "export" and first["version"] == 1
assert last["record"] == "end" and last["lines"] == len(lines) - 1
assert last["sha256"] == hashlib.sha256(data[: len(data) - len(lines[-1]) - 1]).hexdigest()

messages = [record for record in records if record["record"] == "message"]
assert last["messages"] == len(messages)
timetokens = [message["timetoken"] for message in messages]
assert timetokens == sorted(set(timetokens)), "the timetokens are out of order, or one appears twice"
assert all(len(timetoken) == 17 for timetoken in timetokens)
assert all(timetoken <= first["highWater"] for timetoken in timetokens) or any(
    record["record"] == "resumed" for record in records)

order = ["channel", "consumer", "message", "deduplication"]
place = 0
for record in records[1:-1]:
    if record["record"] == "resumed":
        continue
    if record["record"] in ("channel", "consumer"):
        continue
    assert order.index(record["record"]) >= place, "the records are out of order"
    place = order.index(record["record"])


def payload(message):
    if "payload" in message:
        assert "payloadBase64" not in message
        return message["payload"].encode("utf-8")
    return base64.b64decode(message["payloadBase64"], validate=True)


print(json.dumps({
    "messages": [
        {
            "timetoken": message["timetoken"], "channel": message["channel"],
            "payload": payload(message).hex(), "headers": message.get("headers", {}),
            "priority": message.get("priority", 4), "orderingKey": message.get("orderingKey"),
            "settledBy": message.get("settledBy", []),
            "inHand": [delivery["consumer"] for delivery in message.get("deliveries", [])],
            "dead": [dead["consumer"] for dead in message.get("deadLetters", [])],
        }
        for message in messages
    ],
    "resumed": sum(record["record"] == "resumed" for record in records),
}))
