#!/usr/bin/env python3
"""Reads and writes vault files with joserfc, written only from docs/reference/vault-format.md.

    vault_reader.py open FILE SLOT [SALT]         prints the clear members and the contents as JSON
    vault_reader.py write FILE SLOT... [SALT]     reads items as JSON from standard input

SLOT is --password F, --recovery-code F or --key-file F. SALT is --salt F. F is a file with the secret. write
makes a slot for each SLOT. If F of a recovery code does not exist, a code is drawn and stored in F.
"""
import argparse, base64, hashlib, hmac, json, os, re, secrets, sys, time

from joserfc import jwe
from joserfc.jwe import FlattenedJSONEncryption, GeneralJSONEncryption, JWERegistry
from joserfc.jwk import OctKey

REGISTRY = JWERegistry(
    algorithms=["PBES2-HS512+A256KW", "A256KW", "dir", "A256GCM"], verify_all_recipients=False)
REGISTRY.max_ciphertext_length = 44 << 20
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
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
    """The original bytes of the first member, from its first to its last brace."""
    assert file.startswith(b'{"key":{')
    text = file.decode()
    _, end = json.JSONDecoder(object_pairs_hook=unique).raw_decode(text, len('{"key":'))
    return text[len('{"key":'):end].encode()


def code_text(data):
    bits = "".join(f"{byte:08b}" for byte in data + hashlib.sha256(data).digest()[:3])[:180]
    text = "".join(ALPHABET[int(bits[at:at + 5], 2)] for at in range(0, 180, 5))
    return "-".join(text[at:at + 4] for at in range(0, 36, 4))


def code_bytes(text):
    text = text.replace("-", "").replace(" ", "").upper()
    for written, meant in ("I1", "L1", "O0"):
        text = text.replace(written, meant)
    assert len(text) == 36, "the recovery code has a wrong length"
    data = int("".join(f"{ALPHABET.index(c):05b}" for c in text[:32]), 2).to_bytes(20, "big")
    assert code_text(data).replace("-", "") == text, "the recovery code is mistyped"
    return data


def recovery_key(text):
    key = hmac.digest(bytes(64), code_bytes(text), "sha512")  # HKDF, RFC 5869: extract, expand
    return hmac.digest(key, b"datavault/recovery\x01", "sha512")[:32]


def open_vault(file, kind, secret, salt):
    assert len(file) <= 44 << 20, "the file is larger than any vault"
    assert file[-56:-46] == b'"digest":"' and file[-3:] == b'"}\n', "the file has no digest"
    assert decode(file[-46:-3].decode()) == hashlib.sha256(file[:-56]).digest(), "the file is damaged"
    vault = json.loads(file, object_pairs_hook=unique)
    assert list(vault) == ["key", "contents", "digest"]
    clear = json.loads(decode(vault["contents"]["aad"]), object_pairs_hook=unique)
    assert clear["version"] == 1, "the vault has another version"
    assert re.fullmatch("[a-z0-9][a-z0-9_-]{0,63}", clear["vault"]), "the vault's id is invalid"
    assert clear["keyDigest"] == encode(hashlib.sha256(key_member_bytes(file)).digest())
    kinds = []
    for recipient in vault["key"]["recipients"]:
        header = recipient["header"]
        kinds.append(header["kid"].partition(":")[0])
        if header["kid"] == "password":
            assert header["alg"] == "PBES2-HS512+A256KW" and 220_000 <= header["p2c"] <= 10_000_000
            header["p2s"] = encode(decode(header["p2s"]) + salt)
        else:
            assert list(header) == ["alg", "kid"] and header["alg"] == "A256KW"
    assert kind in kinds, f"no slot for a {kind}"
    # The library tries each recipient; any of them opens the vault.
    key = jwe.decrypt_json(vault["key"], OctKey.import_key(secret), registry=REGISTRY)
    jwk = OctKey.import_key(json.loads(key.plaintext, object_pairs_hook=unique))
    contents = jwe.decrypt_json(vault["contents"], jwk, registry=REGISTRY)
    return clear, checked(contents.plaintext)


def checked(plaintext):
    """The plaintext's members, after a check of their sizes."""
    assert len(plaintext) <= 32 << 20, "the plaintext is too large"
    contents = json.loads(plaintext, object_pairs_hook=unique)
    keys = decode(contents["dataKeys"])
    assert len(keys) % 32 == 0 and len(keys) >= 32, "the data keys have a wrong length"
    assert len(keys) <= 4096 * 32, "there are too many data keys"
    total = 0
    for name, item in contents["items"].items():
        [(kind, text)] = item.items()
        value = decode(text) if kind == "binary" else text.encode()
        assert len(value) <= 1 << 20, "an item is too large"
        total += len(name.encode()) + len(value)
    assert total <= 16 << 20, "the items together are too large"
    return contents


def make_vault(identifier, slots, salt, items):
    vault_key = os.urandom(32)
    key = GeneralJSONEncryption(
        {"enc": "A256GCM", "cty": "jwk+json"}, compact({"kty": "oct", "k": encode(vault_key)}).encode())
    headers = []
    for kind, secret in slots:
        header = {"alg": "A256KW", "kid": f"{kind}:judge"}
        if kind == "password":
            p2s = os.urandom(16)
            header = {"alg": "PBES2-HS512+A256KW", "kid": kind, "p2s": encode(p2s), "p2c": 300_000}
        headers.append(header)
        salted = {**header, "p2s": encode(p2s + salt)} if kind == "password" else header
        key.add_recipient(salted, OctKey.import_key(secret))
    key = jwe.encrypt_json(key, None, registry=REGISTRY)
    for recipient, header in zip(key["recipients"], headers):
        recipient["header"] = header
    key = compact({name: key[name] for name in ("protected", "recipients", "iv", "ciphertext", "tag")})
    clear = {"version": 1, "vault": identifier, "secured": True, "retryLimit": 0, "binding": None,
             "keyDigest": encode(hashlib.sha256(key.encode()).digest())}
    plaintext = {
        "generation": 1, "passwordSetAt": int(time.time()), "policy": POLICY, "databases": None,
        "dataKeys": encode(os.urandom(32)),
        "items": dict(sorted(items.items(), key=lambda item: item[0].encode()))}
    contents = FlattenedJSONEncryption(
        {"alg": "dir", "enc": "A256GCM"}, compact(plaintext).encode(), aad=compact(clear).encode())
    contents.add_recipient({}, OctKey.import_key(vault_key))
    contents = jwe.encrypt_json(contents, None, registry=REGISTRY)
    contents = {name: contents[name] for name in ("protected", "aad", "iv", "ciphertext", "tag")}
    head = ('{"key":' + key + ',"contents":' + compact(contents) + ",").encode()
    return head + ('"digest":"' + encode(hashlib.sha256(head).digest()) + '"}\n').encode()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def recovery_code(path, may_draw):
    if may_draw and not os.path.exists(path):
        with open(path, "w") as file:
            file.write(code_text(secrets.token_bytes(20)) + "\n")
    return recovery_key(read(path).decode().removesuffix("\n"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("operation", choices=["open", "write"])
    parser.add_argument("file")
    for option in ("--password", "--salt", "--recovery-code", "--key-file"):
        parser.add_argument(option)
    options = parser.parse_args()
    salt = read(options.salt) if options.salt else b""
    slots = []
    if options.password:
        slots.append(("password", read(options.password)))
    if options.recovery_code:
        slots.append(("recovery", recovery_code(options.recovery_code, options.operation == "write")))
    if options.key_file:
        slots.append(("keyfile", read(options.key_file)))
    if options.operation == "open":
        [(kind, secret)] = slots
        clear, contents = open_vault(read(options.file), kind, secret, salt)
        json.dump({"clear": clear, **contents}, sys.stdout)
    else:
        identifier = os.path.basename(options.file).removesuffix(".vault")
        file = make_vault(identifier, slots, salt, json.load(sys.stdin))
        with open(os.open(options.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
            target.write(file)


if __name__ == "__main__":
    main()
