#!/usr/bin/env python3
"""Writes the fixtures of this folder, only from docs/reference/replication-format.md. README.md describes them.

usage: make.py    needs the package cryptography; creates missing files and changes no existing one
"""
import base64, hashlib, json, os, sys

from cryptography.hazmat.primitives import hashes, keywrap
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.concatkdf import ConcatKDFHash

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../Tests/ReferenceReaders"))
import replication_reader as reader


def span(start, count):
    return bytes(range(start, start + count))


def n(number, count):
    return number.to_bytes(count, "big", signed=number < 0)


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return n(len(value), 2) + value


def block(value):
    return n(len(value), 4) + value


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


SHARD, NAMING, FOREIGN = span(0xB0, 16), span(0x00, 32), span(0xC0, 32)
OLDER, NEWEST = span(0x20, 32), span(0x40, 32)
NONCE, EPHEMERAL = span(0xA0, 24), span(0x11, 32)


def ring_of(keys, oldest=3, version=1):
    return bytes([version]) + SHARD + NAMING + n(oldest, 4) + bytes([len(keys)]) + b"".join(keys)


RING = ring_of([OLDER, NEWEST])
ring = reader.Ring(RING)

NODE = b"\1" + span(0x60, 32) + span(0x80, 32)
x_of = lambda secret: x25519.X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
NODE_X = x_of(NODE[1:33])
NODE_ED = ed25519.Ed25519PrivateKey.from_private_bytes(NODE[33:]).public_key().public_bytes_raw()
MEMBER = hashlib.sha256(b"datavault/replication/member" + NODE_ED).digest()[:16]


def nkey(public, prefix=160):
    data, crc = bytes([prefix]) + public, 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return base64.b32encode(data + crc.to_bytes(2, "little")).rstrip(b"=").decode()


AUTHOR, EARLIER, EPOCH, LEASE, OTHER = (n(number, 16) for number in (0xA1, 0xA0, 0xE1, 0x1E, 0x0B))
TIME, PLACE = 17_000_000_000_000_000, 16_999_999_999_999_900
ORIGIN = AUTHOR + n(7, 8) + n(2, 4)


def sealed(part, number=5, key=4, **others):
    return reader.seal(ring, AUTHOR, number, key, NONCE, part, **others)


def record(kind, fields, **others):
    return sealed(b"\0" + bytes([kind]) + n(TIME, 8) + fields, **others)


def message(channel="orders", deduplication=b"\0", ordering=b"\0", content=b"\4\0\0" + block(b"") + b"one"):
    return text(channel) + deduplication + ordering + block(content)


def commit(*messages, count=None):
    return record(1, n(len(messages) if count is None else count, 4) + b"".join(messages))


def settlement(outcome, due=b"\0"):
    return record(2, text("w") + ORIGIN + LEASE + EPOCH + outcome + due)


def operation(kind, fields):
    return record(9, block(bytes([kind]) + fields))


# A row of the table `note` that another member inserts: SQLite's session extension.
CHANGES = b"T\4\1\0\0\0note\0\x12\0\1" + n(3, 8) + b"\3\5three\5\5"
HEADERS = text("a") + block(b"b") + text("c") + block(b"")
FULL = b"\x09\1" + n(TIME + 10, 8) + b"\1" + n(TIME + 20, 8) + block(HEADERS) + b"two"
COUNT, C, W = n(256, 4), text("c"), text("w")
good = record(4, EPOCH + n(3, 8))
whole = b"\1" + n(TIME, 8) + n(1, 4) + message()

RECORDS = {
    "commit": commit(message(), message(
        "a.b", b"\1" + text("once"), b"\0", FULL), message("c", b"\0", b"\1" + text("key"))),
    "commit-of-nothing": commit(),
    "settlement-acknowledged": settlement(b"\0"),
    "settlement-released": settlement(b"\1" + text("not yet"), b"\1" + n(TIME + 50, 8)),
    "settlement-released-not-counted": settlement(b"\2" + text("")),
    "settlement-rejected": settlement(b"\3" + text("never")),
    "settlement-lease-ended": settlement(b"\4"),
    "epoch": record(3, EPOCH + b"\1" + n(0xE0, 16) + MEMBER),
    "epoch-the-first": record(3, EPOCH + b"\0" + MEMBER),
    "heartbeat": good,
    "heartbeat-under-an-older-key": record(4, EPOCH + n(3, 8), key=3),
    "report": record(5, MEMBER + n(40, 8) + span(0xD0, 32) + n(4, 4) + n(3, 4)),
    "join": record(6, MEMBER + b"\1" + n(40, 8)),
    "join-without-a-database": record(6, MEMBER + b"\0"), "leave": record(7, MEMBER),
    "trim": record(8, n(40, 8)), "rows": record(10, block(CHANGES)), "key-switch": record(11, n(4, 4)),
    "key-drop": record(12, n(4, 4)), "repair": record(13, n(PLACE, 8) + n(TIME, 8)),
    "part-1-of-2": sealed(b"\3" + EARLIER + n(9, 8) + whole[:20], number=1),
    "part-2-of-2": sealed(b"\0" + whole[20:], number=2),
    "operation-add-consumer": operation(1, C + W + b"\1" + n(3, 4)),
    "operation-remove-consumer": operation(2, C + W),
    "operation-redrive": operation(3, C + W + b"\1" + n(1, 4) + ORIGIN),
    "operation-remove-dead-letters": operation(4, C + W + b"\0"),
    "operation-set-retention": operation(5, C + b"\0\1\1" + n(5, 8) + b"\1" + n(6, 8) + b"\1" + n(7, 8)),
    "operation-purge": operation(6, C + b"\1" + n(9, 8) + b"\1" + n(10, 8) + COUNT),
    "operation-cancel": operation(7, C + b"\1" + n(1, 4) + ORIGIN),
    "operation-sweep": operation(8, C + b"\0" + COUNT),
    "operation-keep-acknowledged": operation(9, text("a")),
    "operation-sweep-application": operation(
        10, text("a") + n(9, 8) + b"\1" + n(8, 8) + COUNT + n(2, 4) + n(1, 8) + n(2, 8)),
    "operation-remove-channels": operation(11, text("a") + n(9, 8) + n(1, 4) + n(1, 8)),
    "operation-reserve-places": operation(12, n(100, 8)),
    "operation-add-missing-consumer": operation(13, C + W),
}
REFUSED_RECORDS = {
    "empty": b"", "cut-in-the-header": good[:28],
    "cut-behind-the-header": good[:29], "cut-in-the-tag": good[:-1],
    "byte-behind-the-tag": good + b"\0",
    "newer-version": record(4, EPOCH + n(3, 8), version=2), "version-zero": record(4, EPOCH + n(3, 8), version=0), "author-flipped": flipped(good, 16),
    "number-flipped": flipped(good, 24), "number-of-another-key": good[:25] + n(3, 4) + good[29:],
    "key-not-in-the-ring": record(4, EPOCH + n(3, 8), key=2, secret=FOREIGN),
    "nonce-flipped": flipped(good, 29), "ciphertext-flipped": flipped(good, 53),
    "tag-flipped": flipped(good, len(good) - 1),
    "of-another-shard": record(4, EPOCH + n(3, 8), shard=span(0xB1, 16)),
    "sealed-as-a-request": record(4, EPOCH + n(3, 8), purpose=b"request"),
    "part-empty": sealed(b""),
    "part-with-flag-four": sealed(b"\4\4" + n(TIME, 8) + EPOCH + n(3, 8)),
    "part-cut-in-follows": sealed(b"\2" + EARLIER + n(9, 8)[:7]), "kind-zero": record(0, b""),
    "kind-fourteen": record(14, n(4, 4)),
    "cut-in-the-time": sealed(b"\0\4" + n(TIME, 8)[:7]),
    "cut-in-the-last-field": record(4, EPOCH + n(3, 8)[:7]),
    "byte-behind-the-last-field": record(4, EPOCH + n(3, 8) + b"\0"),
    "commit-of-more-than-it-has": commit(message(), count=2),
    "commit-of-fewer-than-it-has": commit(message(), message(), count=1),
    "commit-text-not-utf-8": commit(message(channel=b"\xff")),
    "commit-flag-two": commit(message(deduplication=b"\2" + text("once"))),
    "commit-content-longer-than-the-record": commit(message()[:-14] + n(11, 4) + message()[-10:]),
    "settlement-outcome-five": settlement(b"\5"),
    "settlement-due-flag-two": settlement(b"\1" + text(""), b"\2" + n(TIME, 8)),
    "epoch-flag-two": record(3, EPOCH + b"\2" + n(0xE0, 16) + MEMBER),
    "join-flag-two": record(6, MEMBER + b"\2" + n(40, 8)),
    "operation-kind-zero": operation(0, C + W), "operation-kind-fourteen": operation(14, C + W),
    "operation-cut": operation(6, C + b"\0\0" + COUNT[:3]),
    "operation-byte-behind-the-end": operation(2, C + W + b"\0"),
    "operation-flag-two": operation(5, C + b"\2\0\0\0\0"),
    "operation-place-of-64-bits": operation(8, C + b"\1" + n(1 << 63, 8) + COUNT),
    "operation-without-a-channel": operation(2, text("") + W),
    "operation-without-a-consumer": operation(2, C + text("")),
    "operation-cancel-without-a-list": operation(7, C + b"\0"),
    "operation-of-more-than-it-has": operation(7, C + b"\1" + n(2, 4) + ORIGIN),
    "content-empty": commit(message(content=b"")),
    "content-priority-five-with-an-ordering-key": commit(message(
        ordering=b"\1" + text("key"), content=b"\5\0\0" + block(b"") + b"one")),
    "content-priority-ten": commit(message(content=b"\x0a\0\0" + block(b""))),
    "content-flag-two": commit(message(content=b"\4\2" + n(TIME, 8) + b"\0" + block(b""))),
    "content-cut-in-a-time": commit(message(content=b"\4\1" + n(TIME, 8)[:7])),
    "content-headers-longer-than-it": commit(message(content=b"\4\0\0" + n(9, 4) + text("a"))),
    "content-header-without-a-value": commit(message(content=b"\4\0\0" + block(text("a")))),
    "content-header-twice": commit(message(content=b"\4\0\0" + block((text("a") + block(b"b")) * 2))),
}

# MARK: Requests and replies; the node of the fixtures asks, another member owns the leases

REQUEST_ID = n(0x4E, 16)


def asked(direction, fields, key=4, sender=OTHER, recipient=MEMBER, id=REQUEST_ID, version=1,
          shard=SHARD, purpose=b"request", secret=None):
    header = bytes([version, direction]) + n(key, 4) + id + sender + recipient
    box = reader.cipher(secret or ring.keys[key], purpose, NONCE)
    return header + NONCE + box.encrypt(NONCE[12:], fields, shard + header)


def request(kind, fields, **others):
    return asked(1, EPOCH + n(3, 8) + bytes([kind]) + fields, **others)


def reply(kind, fields, **others):
    return asked(2, bytes([kind]) + fields, **others)


RECEIVE = C + W + n(10, 4) + n(30_000, 8)
receive = request(1, RECEIVE)
settled = reply(2, n(4, 4) + span(0, 4))
REQUESTS = {
    "receive": receive,
    "receive-under-an-older-key": request(1, RECEIVE, key=3),
    "settle": request(2, n(4, 4) + b"".join(LEASE + n(delay, 8) + outcome for delay, outcome in (
        (0, b"\0"), (1_500, b"\1" + text("not yet")), (0, b"\2" + text("")), (0, b"\3" + text("never"))))),
    "extend": request(3, n(1, 4) + LEASE + n(30_000, 8)),
}
REPLIES = {
    "leased": reply(1, n(1, 4) + ORIGIN + n(PLACE, 8) + LEASE + n(2, 4)),
    "settled": settled,
    "extended": reply(3, n(2, 4) + b"\1\0"),
    "not-the-owner": reply(4, b"\1" + MEMBER),
    "not-the-owner-and-none-known": reply(4, b"\0"),
    "refused": reply(5, text("too old")),
}
REFUSED_REQUESTS = {
    "newer-version": request(1, RECEIVE, version=2),
    "of-a-reply": reply(2, n(0, 4)),
    "to-another-member": request(1, RECEIVE, recipient=n(0x0C, 16)),
    "id-flipped": flipped(receive, 21), "sender-flipped": flipped(receive, 37),
    "ciphertext-flipped": flipped(receive, 78),
    "key-not-in-the-ring": request(1, RECEIVE, key=2, secret=FOREIGN),
    "of-another-shard": request(1, RECEIVE, shard=span(0xB1, 16)),
    "sealed-as-a-record": request(1, RECEIVE, purpose=b"record"),
    "cut-in-the-tag": receive[:-1],
    "cut-behind-the-nonce": receive[:78], "kind-zero": request(0, b""),
    "kind-four": request(4, b""),
    "byte-behind-the-last-field": request(1, RECEIVE + b"\0"),
    "receive-of-nothing": request(1, C + W + n(0, 4) + n(30_000, 8)),
    "receive-of-1001": request(1, C + W + n(1_001, 4) + n(30_000, 8)),
    "settle-as-the-owner": request(2, n(1, 4) + LEASE + n(0, 8) + b"\4"),
}
REFUSED_REPLIES = {
    "of-a-request": request(2, n(0, 4)),
    "to-another-request": reply(2, n(4, 4) + span(0, 4), id=n(0x4F, 16)),
    "from-another-member": reply(2, n(4, 4) + span(0, 4), sender=n(0x0C, 16)),
    "to-another-member": reply(2, n(4, 4) + span(0, 4), recipient=n(0x0C, 16)),
    "tag-flipped": flipped(settled, len(settled) - 1), "kind-six": reply(6, b""),
    "settled-result-four": reply(2, n(1, 4) + b"\4"),
    "settled-of-1001": reply(2, n(1_001, 4) + bytes(1_001)),
    "extended-result-two": reply(3, n(1, 4) + b"\2"),
    "byte-behind-the-last-field": reply(5, text("too old") + b"\0"),
}

# MARK: What the ring is handed on with


def compact(members):
    """An object without the members that are None."""
    kept = {name: value for name, value in members.items() if value is not None}
    return json.dumps(kept, separators=(",", ":")).encode()


def request_file(**changes):
    key = {"kty": "OKP", "crv": "X25519", "x": url(NODE_X).decode(), **changes.pop("jwk", {})}
    return compact({"version": 1, "member": MEMBER.hex(), "key": key, "nkey": nkey(NODE_ED), **changes}) + b"\n"


DIGEST = hashlib.sha256(b"datavault/replication/join-request" + MEMBER + NODE_X + NODE_ED).digest()
ADDRESSES = ["nats://127.0.0.1:4222", "tls://broker:4222"]
SETTINGS = {"version": 1, "addresses": ADDRESSES, "login": True, "syncSeconds": 300}


def settings(**changes):
    return compact({**SETTINGS, **changes})


JOINER = b"\x20" + span(0xE0, 32) + settings()


def handed(joiner):
    return b"\1" + block(RING) + block(joiner)


def invitation(plaintext=handed(JOINER), apv=DIGEST, to=NODE_X, **changes):
    """RFC 7518, section 4.6: the wrapping key comes from the shared secret, alg, no apu, apv, and 256 bits."""
    header = {"alg": "ECDH-ES+A256KW", "enc": "A256GCM", "typ": "datavault-invitation",
              "epk": {"kty": "OKP", "crv": "X25519", "x": url(x_of(EPHEMERAL)).decode()},
              "apv": url(apv).decode(), **changes}
    protected = url(compact(header))
    info = block(b"ECDH-ES+A256KW") + block(b"") + block(apv) + n(256, 4)
    secret = x25519.X25519PrivateKey.from_private_bytes(EPHEMERAL).exchange(
        x25519.X25519PublicKey.from_public_bytes(to))
    wrapping = ConcatKDFHash(hashes.SHA256(), 32, info).derive(secret)
    content_key, nonce = span(0x31, 32), span(0x51, 12)
    box = AESGCM(content_key).encrypt(nonce, plaintext, protected)
    parts = keywrap.aes_key_wrap(wrapping, content_key), nonce, box[:-16], box[-16:]
    return b".".join([protected, *map(url, parts)])


invited = invitation()


def changed(index, change):
    parts = invited.split(b".")
    parts[index] = url(change(base64.urlsafe_b64decode(parts[index] + b"===")))
    return b".".join(parts)


bit = lambda part: flipped(part, 0)
HANDED = {
    "positive": {
        "two-keys.ring": RING,
        "64-keys.ring": ring_of([n(number, 32) for number in range(64)], oldest=1),
        "keys.node": NODE,
        "copy.key": reader.derive(NEWEST, b"datavault/replication/copy" + MEMBER),
        "file.join": request_file(),
        "in-another-order.join": json.dumps(dict(reversed(json.loads(request_file()).items())), indent=1).encode(),
        "file.invitation": invited,
        "with-a-line-feed.invitation": invited + b"\n",
        "brokers.settings": settings(),
        "with-an-authority.settings": settings(authority="-----BEGIN CERTIFICATE-----\n", login=False, syncSeconds=0),
    },
    "negative": {
        "newer-version.ring": ring_of([OLDER, NEWEST], version=2),
        "without-keys.ring": ring_of([]),
        "65-keys.ring": ring_of([n(number, 32) for number in range(65)]),
        "oldest-zero.ring": ring_of([OLDER, NEWEST], oldest=0),
        "numbers-beyond-32-bits.ring": ring_of([OLDER, NEWEST], oldest=(1 << 32) - 1),
        "cut.ring": RING[:-1],
        "cut-in-the-header.ring": RING[:53],
        "byte-behind-the-keys.ring": RING + b"\0",
        "newer-version.node": b"\2" + NODE[1:],
        "cut.node": NODE[:-1],
        "byte-behind-the-keys.node": NODE + b"\0",
        "newer-version.join": request_file(version=2),
        "version-as-text.join": request_file(version="1"),
        "member-missing.join": request_file(nkey=None),
        "another-member.join": request_file(name="other"),
        "member-twice.join": b'{"version":1,' + request_file()[1:],
        "uppercase-id.join": request_file(member=MEMBER.hex().upper()),
        "id-of-31-digits.join": request_file(member=MEMBER.hex()[1:]),
        "key-of-another-curve.join": request_file(jwk={"crv": "Ed25519"}),
        "key-of-another-type.join": request_file(jwk={"kty": "EC"}),
        "private-key.join": request_file(jwk={"d": url(span(0, 32)).decode()}),
        "key-of-31-bytes.join": request_file(jwk={"x": url(NODE_X[1:]).decode()}),
        "key-with-padding.join": request_file(jwk={"x": url(NODE_X).decode() + "="}),
        "nkey-with-another-checksum.join": request_file(nkey=nkey(NODE_ED)[:-1] + "A"),
        "nkey-of-an-account.join": request_file(nkey=nkey(NODE_ED, prefix=0)),
        "nkey-in-lowercase.join": request_file(nkey=nkey(NODE_ED).lower()),
        "of-4097-bytes.join": request_file().ljust(4_097),
        "another-algorithm.invitation": invitation(alg="ECDH-ES"),
        "another-encryption.invitation": invitation(enc="A256CBC-HS512"),
        "another-type.invitation": invitation(typ="JWT"),
        "type-missing.invitation": invitation(typ=None),
        "another-member-of-the-header.invitation": invitation(apu=""),
        "five-parts-and-one.invitation": invited + b".",
        "tag-with-padding.invitation": invited + b"==",
        "two-line-feeds.invitation": invited + b"\n\n",
        "to-another-request.invitation": invitation(apv=flipped(DIGEST, 0)),
        "to-another-key.invitation": invitation(to=x_of(FOREIGN)),
        "header-written-otherwise.invitation": changed(0, lambda header: b" " + header),
        "encrypted-key-flipped.invitation": changed(1, bit),
        "nonce-flipped.invitation": changed(2, bit),
        "ciphertext-flipped.invitation": changed(3, bit),
        "tag-flipped.invitation": changed(4, bit),
        "plaintext-empty.invitation": invitation(b""),
        "newer-version.invitation": invitation(b"\2" + block(RING) + block(JOINER)),
        "ring-longer-than-it.invitation": invitation(b"\1" + n(200, 4) + RING),
        "settings-missing.invitation": invitation(b"\1" + block(RING)),
        "byte-behind-the-settings.invitation": invitation(handed(JOINER) + b"\0"),
        "ring-of-a-newer-version.invitation": invitation(b"\1" + block(b"\2" + RING[1:]) + block(JOINER)),
        "joiner-key-of-31-bytes.invitation": invitation(handed(b"\x1f" + span(0xE0, 31) + settings())),
        "joiner-settings-missing.invitation": invitation(handed(JOINER[:33])),
        "newer-version.settings": settings(version=2),
        "another-member.settings": settings(other=1),
        "login-missing.settings": settings(login=None),
        "without-addresses.settings": settings(addresses=[]),
        "65-addresses.settings": settings(addresses=["nats://b:1"] * 65),
        "address-a-number.settings": settings(addresses=[1]),
        "sync-of-more-than-a-day.settings": settings(syncSeconds=86_401),
        "not-json.settings": settings()[:-1],
    },
}

for folder, kinds in (
        ("positive", {"record": RECORDS, "request": REQUESTS, "reply": REPLIES}),
        ("negative", {"record": REFUSED_RECORDS, "request": REFUSED_REQUESTS, "reply": REFUSED_REPLIES})):
    os.makedirs(os.path.join(HERE, folder), exist_ok=True)
    for kind, named in kinds.items():
        HANDED[folder].update({"%s.%s" % (name, kind): data for name, data in named.items()})
    for name, data in HANDED[folder].items():
        path = os.path.join(HERE, folder, name)
        if not os.path.exists(path):
            with open(path, "wb") as file:
                file.write(data)
