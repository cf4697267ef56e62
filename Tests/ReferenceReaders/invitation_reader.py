#!/usr/bin/env python3
"""Opens and seals invitations with joserfc, without our code.

usage: invitation_reader.py open|seal

Reads a JSON object from standard input, and writes one to standard output. See
docs/reference/replication-format.md, "Handing the ring on".

open: private and public key of the node, base64url, and the invitation; the plaintext in hexadecimal
digits and the header.
seal: a join request as its text, the digest of it in apv, base64url, and the plaintext in hexadecimal
digits; the invitation.
"""
import json
import sys

from joserfc import jwe
from joserfc.jwk import OKPKey

ALGORITHMS = ["ECDH-ES+A256KW", "A256GCM"]

case = json.load(sys.stdin)
if sys.argv[1] == "open":
    key = OKPKey.import_key(
        {"kty": "OKP", "crv": "X25519", "x": case["public"], "d": case["private"]})
    opened = jwe.decrypt_compact(case["invitation"], key, algorithms=ALGORITHMS)
    answer = {"plaintext": opened.plaintext.hex(), "header": opened.protected}
else:
    key = OKPKey.import_key(json.loads(case["request"])["key"])
    header = {"alg": "ECDH-ES+A256KW", "enc": "A256GCM", "typ": "datavault-invitation",
              "apv": case["apv"]}
    answer = {"invitation": jwe.encrypt_compact(
        header, bytes.fromhex(case["plaintext"]), key, algorithms=ALGORITHMS)}
json.dump(answer, sys.stdout)
