"""Makes fixtures: seals databases and vaults, written only from the specifications, with one fault on demand.

The reference readers in this folder open its files. Nothing here is random: each nonce is derived from a name.
"""
import hashlib, json, struct

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap, aes_key_wrap

from sealed_database_reader import CONTENT, PAGE, Sealed, u32, xaes_key
from vault_reader import compact, decode, encode

# docs/reference/vault-format.md: the protected headers of the two JWEs, and the fewest iterations.
KEY_PROTECTED = encode(b'{"enc":"A256GCM","cty":"jwk+json"}')
CONTENTS_PROTECTED = encode(b'{"alg":"dir","enc":"A256GCM"}')
ITERATIONS = 220_000


def flipped(data, at):
    """The data with one bit flipped."""
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def nonce_of(name, count, length):
    return hashlib.sha256(b"%s %d" % (name.encode(), count)).digest()[:length]


class SealedForge(Sealed):
    """Seals pages, frame headers and segments of a journal for the reference reader."""

    def __init__(self, name, key, header):
        super().__init__(key, header)
        self.name, self.count = name, 0

    def seal(self, role, plaintext, aad):
        self.count += 1
        nonce = nonce_of(self.name, self.count, 24)
        box = AESGCM(xaes_key(self.keys[role], nonce)).encrypt(nonce[12:], plaintext, aad)
        return box[:-16], nonce, box[-16:]

    def seal_page(self, role, number, plain):
        first = self.header if number == 1 else b""
        aad = bytes([role]) + self.file_id + u32(number) + first
        return first + b"".join(self.seal(role, plain[len(first):CONTENT], aad))

    def seal_database(self, plain):
        return b"".join(
            self.seal_page(1, start // PAGE + 1, plain[start:start + PAGE])
            for start in range(0, len(plain), PAGE))

    def seal_frame_header(self, header, offset):
        tweak = offset.to_bytes(16, "little")
        encryptor = Cipher(algorithms.AES(self.frame_key), modes.XTS(tweak)).encryptor()
        return header[:8] + encryptor.update(header[8:24]) + encryptor.finalize()

    def seal_segment(self, records, page_count, seed, is_synchronized=True):
        """A journal header with its records, each a tuple of page number, page and seed."""
        start = b"\0DVJ\1" + bytes([1 if is_synchronized else 2, 0, 0])
        words = struct.pack(">5I", len(records), seed, page_count, 512, PAGE)
        header = start + b"".join(self.seal(2, words, b"\x02" + self.file_id + u32(0) + start))
        data = header.ljust(512, b"\0") + b"".join(
            u32(number) + self.seal_page(2, number, page) + u32(seed)
            for number, page, seed in records)
        return data + bytes(-len(data) % 512)


def with_digest(head):
    return head + b'"digest":"%s"}\n' % encode(hashlib.sha256(head).digest()).encode()


def password_key(password, p2s, count=ITERATIONS):
    salt = b"PBES2-HS512+A256KW\0" + p2s
    return hashlib.pbkdf2_hmac("sha512", password, salt, count, 32)


def sealed_part(name, count, key, plaintext, aad, flips_tag=False):
    nonce = nonce_of(name, count, 12)
    box = AESGCM(key).encrypt(nonce, plaintext, aad.encode())
    tag = flipped(box[-16:], 0) if flips_tag else box[-16:]
    return {"iv": encode(nonce), "ciphertext": encode(box[:-16]), "tag": encode(tag)}


class VaultFileBuilder:
    """A vault with a password slot; callers can change each part before they call `file`."""

    content_key, vault_key, p2s = b"\xc0" * 32, b"\x7a" * 32, bytes(range(1, 17))

    def __init__(self, name, password, plaintext):
        self.name, self.password, self.plaintext = name, password, plaintext
        self.clear = {"version": 1, "vault": name, "secured": True, "retryLimit": 0, "binding": None}
        self.flips_key_tag = self.flips_contents_tag = False

    @classmethod
    def opening(cls, name, file, password):
        """Opens an existing vault, so that its plaintext can be changed and the rest stays."""
        vault = json.loads(file)
        key, contents = vault["key"], vault["contents"]
        [slot] = key["recipients"]
        wrapping = password_key(password, decode(slot["header"]["p2s"]), slot["header"]["p2c"])
        content_key = aes_key_unwrap(wrapping, decode(slot["encrypted_key"]))
        def opened(part, key, aad):
            return AESGCM(key).decrypt(
                decode(part["iv"]), decode(part["ciphertext"]) + decode(part["tag"]), aad.encode())
        jwk = json.loads(opened(key, content_key, key["protected"]))
        forge = cls(name, password, opened(
            contents, decode(jwk["k"]), contents["protected"] + "." + contents["aad"]))
        forge.content_key, forge.vault_key = content_key, decode(jwk["k"])
        forge.p2s, forge.count = decode(slot["header"]["p2s"]), slot["header"]["p2c"]
        forge.clear = json.loads(decode(contents["aad"]))
        return forge

    count = ITERATIONS

    def file(self):
        header = {"alg": "PBES2-HS512+A256KW", "kid": "password", "p2s": encode(self.p2s),
                  "p2c": self.count}
        wrapped = aes_key_wrap(password_key(self.password, self.p2s, self.count), self.content_key)
        jwk = compact({"kty": "oct", "k": encode(self.vault_key)}).encode()
        key = compact({
            "protected": KEY_PROTECTED,
            "recipients": [{"header": header, "encrypted_key": encode(wrapped)}],
            **sealed_part(self.name, 1, self.content_key, jwk, KEY_PROTECTED, self.flips_key_tag)})
        clear = {**self.clear, "keyDigest": encode(hashlib.sha256(key.encode()).digest())}
        aad = encode(compact(clear).encode())
        contents = compact({
            "protected": CONTENTS_PROTECTED, "aad": aad,
            **sealed_part(self.name, 2, self.vault_key, self.plaintext,
                          CONTENTS_PROTECTED + "." + aad, self.flips_contents_tag)})
        return with_digest(('{"key":' + key + ',"contents":' + contents + ",").encode())
