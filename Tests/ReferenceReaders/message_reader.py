#!/usr/bin/env python3
"""Encrypts and decrypts messages in DataVault's form, written only from docs/reference/encrypted-message-format.md.

    message_reader.py    reads and writes lines of JSON

A line has the key and perhaps a nonce (hexadecimal), the channel, the place (bytes, message or member) and the name
of a member. With `plaintext` (base64) it is encrypted, with `message` (base64) decrypted. The answer is the base64 of
the result, or null. Before the first line it checks its XAES-256-GCM with the vectors of C2SP.
"""
import base64, json, os, sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.cmac import CMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

PLACES = {"bytes": b"\0", "message": b"\1", "member": b"\2"}
HEADER = b"PNED\1DVX1\x20"


def xaes(key, nonce):
    """The GCM cipher of a nonce, by CMAC as a key derivation in counter mode (SP 800-108), and by the steps of the page."""
    def cmac(block):
        code = CMAC(algorithms.AES(key))
        code.update(block)
        return code.finalize()

    def encrypt(block):
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)

    derived = cmac(b"\0\1X\0" + nonce[:12]) + cmac(b"\0\2X\0" + nonce[:12])
    zero = int.from_bytes(encrypt(bytes(16)), "big")
    k1 = (zero << 1 & (1 << 128) - 1) ^ (0x87 if zero >> 127 else 0)
    steps = b"".join(
        encrypt((int.from_bytes(start + nonce[:12], "big") ^ k1).to_bytes(16, "big"))
        for start in (b"\0\1X\0", b"\0\2X\0"))
    assert derived == steps
    return AESGCM(derived)


def keys(key):
    derived = HKDF(hashes.SHA512(), 40, None, b"datavault/message").derive(key)
    return derived[:32], derived[32:]


def bound(channel, place, name):
    channel = channel.encode()
    return len(channel).to_bytes(2, "big") + channel + PLACES[place] + (name.encode() if place == "member" else b"")


def seal(key, nonce, channel, place, name, plaintext):
    encryption_key, key_id = keys(key)
    header = HEADER + key_id + nonce
    return header + xaes(encryption_key, nonce).encrypt(nonce[12:], plaintext, header + bound(channel, place, name))


def unseal(key, channel, place, name, message):
    encryption_key, key_id = keys(key)
    header, nonce = message[:42], message[18:42]
    if len(message) < 58 or header[:10] != HEADER or header[10:18] != key_id:
        return None
    try:
        return xaes(encryption_key, nonce).decrypt(nonce[12:], message[42:], header + bound(channel, place, name))
    except InvalidTag:
        return None


def check_vectors():
    nonce, text = b"ABCDEFGHIJKLMNOPQRSTUVWX", b"XAES-256-GCM"
    for byte, aad, expected in (
            (1, b"", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
            (3, b"c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d")):
        assert xaes(bytes([byte]) * 32, nonce).encrypt(nonce[12:], text, aad).hex() == expected


def answer(line):
    key, place = bytes.fromhex(line["key"]), (line["channel"], line["place"], line.get("name"))
    if "message" in line:
        return unseal(key, *place, base64.b64decode(line["message"]))
    nonce = bytes.fromhex(line["nonce"]) if "nonce" in line else os.urandom(24)
    return seal(key, nonce, *place, base64.b64decode(line["plaintext"]))


if __name__ == "__main__":
    check_vectors()
    for line in sys.stdin:
        result = answer(json.loads(line))
        print(json.dumps(None if result is None else base64.b64encode(result).decode()))
