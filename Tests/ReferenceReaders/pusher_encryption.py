"""Encrypts and decrypts an event of an encrypted channel with Pusher's own server library, for PusherEncryptionTests.

Usage: pusher_encryption.py CHANNEL MASTER_KEY PLAINTEXT DATA

MASTER_KEY is base64, DATA is the text of an event that our library has encrypted. It prints the channel's shared secret,
the text of an event with PLAINTEXT, and the plaintext of DATA, one line each.
"""

import base64
import json
import sys

import nacl.secret
from pusher import Pusher
from pusher.crypto import encrypt, generate_shared_secret, parse_master_key

channel, master_key, plaintext, data = sys.argv[1:]
library = Pusher(app_id="1", key="key", secret="secret", encryption_master_key_base64=master_key)
key = parse_master_key(None, master_key)
secret = library.authenticate(channel, "1.1")["shared_secret"]
secret = secret.decode() if isinstance(secret, bytes) else secret
assert base64.b64decode(secret) == generate_shared_secret(channel.encode(), key)
print(secret)
print(json.dumps(encrypt(channel, plaintext, key)))
event = json.loads(data)
box = nacl.secret.SecretBox(base64.b64decode(secret))
print(box.decrypt(base64.b64decode(event["ciphertext"]), base64.b64decode(event["nonce"])).decode())
