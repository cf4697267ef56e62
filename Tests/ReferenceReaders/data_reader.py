#!/usr/bin/env python3
"""Seals and opens data of a vault, written only from docs/reference/sealed-data-format.md.

    data_reader.py open KEY_FILE CONTEXT_FILE    reads sealed data, writes plaintext
    data_reader.py seal KEY_FILE CONTEXT_FILE    reads plaintext, writes sealed data

It reads standard input and writes standard output.
"""
import os, sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

CHUNK = 65536


def derive(key, salt, info, length):
    return HKDF(hashes.SHA512(), length, salt or None, info).derive(key)


def cipher(data_key, header, context):
    return AESGCM(derive(data_key, header, b"datavault/data\0" + context, 32))


def nonce(index, is_last):
    return index.to_bytes(11, "big") + bytes([is_last])


def pieces(data, length):
    return [data[start:start + length] for start in range(0, len(data), length)] or [b""]


def seal(data_key, context, data):
    header = b"DVD\1" + derive(data_key, b"", b"datavault/data-id", 8) + os.urandom(32)
    aead, chunks = cipher(data_key, header, context), pieces(data, CHUNK)
    return header + b"".join(
        aead.encrypt(nonce(index, chunk is chunks[-1]), chunk, None)
        for index, chunk in enumerate(chunks))


def open_sealed(data_key, context, sealed):
    header, body = sealed[:44], sealed[44:]
    assert header[:4] == b"DVD\1" and len(header) == 44
    assert header[4:12] == derive(data_key, b"", b"datavault/data-id", 8)
    aead, chunks = cipher(data_key, header, context), pieces(body, CHUNK + 16)
    assert len(chunks) == 1 or len(chunks[-1]) > 16, "the last chunk is empty"
    return b"".join(
        aead.decrypt(nonce(index, index == len(chunks) - 1), chunk, None)
        for index, chunk in enumerate(chunks))


def main(operation, key_path, context_path):
    key, context = open(key_path, "rb").read(), open(context_path, "rb").read()
    work = {"open": open_sealed, "seal": seal}[operation]
    sys.stdout.buffer.write(work(key, context, sys.stdin.buffer.read()))


main(*sys.argv[1:])
