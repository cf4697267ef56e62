#!/usr/bin/env python3
"""Reads and writes vault files with joserfc, by docs/vault-format.md alone.

    vault_judge.py open FILE PASSWORD_FILE [SALT_FILE]    prints the items as JSON
    vault_judge.py write FILE PASSWORD_FILE [SALT_FILE]   items as JSON on standard input
"""
import base64, hashlib, json, os, sys, time

from joserfc import jwe
from joserfc.jwe import FlattenedJSONEncryption, GeneralJSONEncryption, JWERegistry
from joserfc.jwk import OctKey

REGISTRY = JWERegistry(
    algorithms=["PBES2-HS512+A256KW", "A256KW", "dir", "A256GCM"], verify_all_recipients=False)
REGISTRY.max_ciphertext_length = 44 << 20
POLICY = {
    "standardPassword": True, "minimumLength": 8, "digit": False, "upper": False, "lower": False,
    "special": False, "minimumUniqueCharacters": 0, "expirationDays": 0, "lockTimeoutSeconds": 0}


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    assert encode(data) == text, "not canonical base64url"
    return data


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def unique(pairs):
    names = [name for name, _ in pairs]
    assert len(set(names)) == len(names), "a member is repeated"
    return dict(pairs)


def key_member_bytes(file):
    """The bytes of the first member, without parsing it again: from its first to its last brace."""
    assert file.startswith(b'{"key":{')
    text = file.decode()
    _, end = json.JSONDecoder(object_pairs_hook=unique).raw_decode(text, len('{"key":'))
    return text[len('{"key":'):end].encode()


def open_vault(file, password, salt):
    digest = encode(hashlib.sha256(file[:-56]).digest())
    assert file[-56:] == b'"digest":"' + digest.encode() + b'"}\n', "damaged"
    vault = json.loads(file, object_pairs_hook=unique)
    assert list(vault) == ["key", "contents", "digest"]
    clear = json.loads(decode(vault["contents"]["aad"]), object_pairs_hook=unique)
    assert clear["version"] == 0, "of a newer version"
    assert clear["keyDigest"] == encode(hashlib.sha256(key_member_bytes(file)).digest())
    for recipient in vault["key"]["recipients"]:
        header = recipient["header"]
        if header["kid"] == "password":
            assert header["alg"] == "PBES2-HS512+A256KW" and 220_000 <= header["p2c"] <= 10_000_000
            header["p2s"] = encode(decode(header["p2s"]) + salt)
            key = jwe.decrypt_json(vault["key"], OctKey.import_key(password), registry=REGISTRY)
    jwk = OctKey.import_key(json.loads(key.plaintext, object_pairs_hook=unique))
    contents = jwe.decrypt_json(vault["contents"], jwk, registry=REGISTRY)
    return clear, json.loads(contents.plaintext, object_pairs_hook=unique)


def make_vault(identifier, password, salt, items):
    p2s, vault_key = os.urandom(16), os.urandom(32)
    header = {"alg": "PBES2-HS512+A256KW", "kid": "password", "p2s": encode(p2s + salt),
              "p2c": 300_000}
    key = GeneralJSONEncryption(
        {"enc": "A256GCM", "cty": "jwk+json"}, compact({"kty": "oct", "k": encode(vault_key)}).encode())
    key.add_recipient(header, OctKey.import_key(password))
    key = jwe.encrypt_json(key, None, registry=REGISTRY)
    key["recipients"][0]["header"] = {**header, "p2s": encode(p2s)}
    key = compact({name: key[name] for name in ("protected", "recipients", "iv", "ciphertext", "tag")})
    clear = {"version": 0, "vault": identifier, "secured": True, "retryLimit": 0, "binding": None,
             "keyDigest": encode(hashlib.sha256(key.encode()).digest())}
    plaintext = {
        "generation": 1, "passwordSetAt": int(time.time()), "policy": POLICY, "databases": None,
        "items": dict(sorted(items.items(), key=lambda item: item[0].encode()))}
    contents = FlattenedJSONEncryption(
        {"alg": "dir", "enc": "A256GCM"}, compact(plaintext).encode(), aad=compact(clear).encode())
    contents.add_recipient({}, OctKey.import_key(vault_key))
    contents = jwe.encrypt_json(contents, None, registry=REGISTRY)
    contents = {name: contents[name] for name in ("protected", "aad", "iv", "ciphertext", "tag")}
    head = ('{"key":' + key + ',"contents":' + compact(contents) + ",").encode()
    return head + ('"digest":"' + encode(hashlib.sha256(head).digest()) + '"}\n').encode()


def main(verb, path, *secrets):
    password, salt = ([open(name, "rb").read() for name in secrets] + [b""])[:2]
    if verb == "open":
        clear, contents = open_vault(open(path, "rb").read(), password, salt)
        json.dump({"clear": clear, **contents}, sys.stdout)
    else:
        identifier = os.path.basename(path).removesuffix(".vault")
        file = make_vault(identifier, password, salt, json.load(sys.stdin))
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
            target.write(file)


main(*sys.argv[1:])
