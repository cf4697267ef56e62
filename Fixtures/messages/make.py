#!/usr/bin/env python3
"""Writes the fixtures of this folder, only from docs/reference/encrypted-message-format.md. README.md describes them.

usage: make.py    needs the packages cryptography and pubnub; creates missing files and changes no existing one
"""
import base64, json, os, sys

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from pubnub.crypto import AesCbcCryptoModule, LegacyCryptoModule
from pubnub.pnconfiguration import PNConfiguration

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../Tests/ReferenceReaders"))
import message_reader as ours

NEWEST, OLDER, FOREIGN = (bytes(range(start, start + 32)) for start in (0x00, 0x20, 0x40))
NONCE = bytes(range(0xA0, 0xB8))
CIPHER_KEY = "correct horse"
TEXT = '{"text":"two books"}'.encode()
HARD = '"zwei B\u00fccher \\ud83d\\udcda, \U0001F4DA and\\u0000\\/"'.encode()


def xaes(plaintext=TEXT, place="message", name="", key=NEWEST, channel="orders"):
    return ours.seal(key, NONCE, channel, place, name, plaintext)


def resealed(header, plaintext=TEXT):
    """A message whose tag is right for another header."""
    data = header[-32:]
    return header + ours.xaes(ours.keys(NEWEST)[0], data[8:]).encrypt(
        data[20:], plaintext, header + ours.bound("orders", "message", ""))


def module(form):
    configuration = PNConfiguration()
    configuration.cipher_key = CIPHER_KEY
    configuration.use_random_initialization_vector = form != "legacy-static"
    return (AesCbcCryptoModule if form == "aes-cbc" else LegacyCryptoModule)(configuration)


def cbc(blocks, iv=bytes(range(16)), header=b"PNED\1ACRH\x10"):
    """A message of the crypto module with these blocks, padding included."""
    import hashlib
    key = hashlib.sha256(CIPHER_KEY.encode()).digest()
    cipher = Cipher(algorithms.AES(key), modes.CBC(bytes(range(16)))).encryptor()
    return header + iv + cipher.update(blocks)


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def text(message, base64_text=None):
    return json.dumps(base64_text or base64.b64encode(message).decode()).encode()


def member(message):
    return b'{"pn_gcm": {"data": 1},\n "pn_other" : ' + text(message) + b', "z":0}'


short = xaes()
data = short[10:42]
half = base64.b64encode(xaes(b'"ab"')).decode()
FILES = {
    "positive/xaes-message.json": text(short),
    "positive/xaes-under-an-older-key.json": text(xaes(key=OLDER)),
    "positive/xaes-other-writing.json": text(xaes(HARD)),
    "positive/xaes-escaped.json": b" \n" + text(short).replace(b"/", b"\\/").replace(b"U", b"\\u0055", 1) + b"\t",
    "positive/xaes-member.json": member(xaes(place="member", name="pn_other")),
    "positive/xaes-file.bin": xaes(bytes(range(256)), place="bytes"),
    "positive/xaes-empty-file.bin": xaes(b"", place="bytes"),
    "negative/header-cut.json": text(short[:8]),
    "negative/newer-header-version.json": text(resealed(b"PNED\2DVX1\x20" + data)),
    "negative/unknown-identifier.json": text(resealed(b"PNED\1DVX2\x20" + data)),
    "negative/length-in-two-bytes.json": text(resealed(b"PNED\1DVX1\xff\0\x20" + data)),
    "negative/length-of-31.json": text(resealed(b"PNED\1DVX1\x1f" + data)),
    "negative/cut-in-the-tag.json": text(short[:-1]),
    "negative/cut-behind-the-nonce.json": text(short[:42]),
    "negative/key-id-flipped.json": text(flipped(short, 10)),
    "negative/key-of-another-cipher.json": text(xaes(key=FOREIGN)),
    "negative/nonce-flipped.json": text(flipped(short, 18)),
    "negative/ciphertext-flipped.json": text(flipped(short, 42)),
    "negative/tag-flipped.json": text(flipped(short, len(short) - 1)),
    "negative/of-another-channel.json": text(xaes(channel="order")),
    "negative/of-a-member.json": text(xaes(place="member")),
    "negative/of-a-file.json": text(xaes(place="bytes")),
    "negative/member-of-another-name.json": member(xaes(place="member", name="pn_othe")),
    "negative/authentic-but-not-json.json": text(xaes(b"two books")),
    "negative/not-json.json": text(short)[:-1],
    "negative/not-a-string.json": b"[" + text(short) + b"]",
    "negative/not-base64.json": text(b"", "two books"),
    "negative/base64url.json": text(b"", base64.urlsafe_b64encode(xaes(HARD)).decode()),
    "negative/base64-without-padding.json": text(b"", half.rstrip("=")),
    "negative/base64-with-unused-bits.json": text(b"", half[:-2] + chr(ord(half[-2]) + 1) + "="),
    "negative/base64-with-a-line-break.json": text(b"", base64.encodebytes(short).decode()),
    "negative/member-missing.json": member(short).replace(b"other", b"0ther"),
    "negative/member-twice.json": member(xaes(place="member", name="pn_other")).replace(b"pn_gcm", b"pn_other"),
    "negative/cbc-padding-of-zero.bin": cbc(TEXT[:15] + b"\0"),
    "negative/cbc-padding-of-seventeen.bin": cbc(TEXT[:15] + b"\x11" * 17),
    "negative/cbc-padding-unequal.bin": cbc(TEXT[:13] + b"\3\2\3"),
    "negative/cbc-without-blocks.json": text(cbc(b"")),
    "negative/cbc-half-a-block.json": text(cbc(TEXT + b"\x0c" * 12)[:-8]),
    "negative/cbc-iv-of-15.json": text(cbc(TEXT + b"\x0c" * 12, bytes(range(15)), b"PNED\1ACRH\x0f")),
    "negative/cbc-not-json.json": text(cbc(b"two books" + b"\7" * 7)),
    "negative/legacy-iv-alone.json": text(bytes(range(16))),
}
assert half.endswith("=") and set(base64.b64encode(xaes(HARD)).decode()) & set("+/")
for form in ("aes-cbc", "legacy-random", "legacy-static"):
    pubnub = module(form)
    FILES[f"positive/{form}-message.json"] = text(b"", pubnub.encrypt(TEXT.decode()))
    FILES[f"positive/{form}-member.json"] = member(base64.b64decode(pubnub.encrypt(TEXT.decode())))
    FILES[f"positive/{form}-file.bin"] = pubnub.encrypt_file(bytes(range(97, 123)))
    FILES[f"positive/{form}-other-writing.json"] = text(b"", pubnub.encrypt(HARD.decode()))

ours.check_vectors()
for name, contents in FILES.items():
    path = os.path.join(HERE, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path):
        with open(path, "xb") as file:
            file.write(contents)
