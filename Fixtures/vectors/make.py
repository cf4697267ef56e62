#!/usr/bin/env python3
"""Writes the compact tables of this folder. README.md lists the sources.

usage: make.py FOLDER-WITH-WYCHEPROOF-JSON
"""
import json
import os
import sys

WYCHEPROOF = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))


def wycheproof(name, pick, fields):
    """The cases of one file that `pick(group, test)` selects, reduced to `fields`."""
    with open(os.path.join(WYCHEPROOF, name + ".json")) as file:
        groups = json.load(file)["testGroups"]
    chosen = [(g, t) for g in groups for t in g["tests"]]
    return [
        {"id": f"wycheproof {name} {t['tcId']}", **{f: t[f] for f in fields}}
        for g, t in chosen if pick(g, t)
    ]


def write(name, sources, vectors):
    lines = ",\n".join("    " + json.dumps(v, separators=(",", ":")) for v in vectors)
    head = json.dumps(sources, indent=4).replace("\n]", "\n  ]")
    with open(os.path.join(HERE, name + ".json"), "w") as file:
        file.write('{\n  "sources": ' + head + ',\n  "vectors": [\n' + lines + "\n  ]\n}\n")


def first(limit, wanted):
    """Selects the first `limit` cases of each kind that `wanted` names."""
    seen = {}

    def pick(group, test):
        kind = wanted(group, test)
        if kind is None:
            return False
        seen[kind] = seen.get(kind, 0) + 1
        return seen[kind] <= limit
    return pick


# AES-256-GCM
def gcm_kind(g, t):
    if g["keySize"] != 256:
        return "other key" if t["tcId"] % 40 == 0 else None
    return (g["ivSize"] == 96, t["result"], tuple(t["flags"]))


gcm_key = "feffe9928665731c6d6a8f9467308308" * 2
gcm_iv = "cafebabefacedbaddecaf888"
gcm_text = (
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255")
gcm_sealed = (
    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
    "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad")
write("aes-256-gcm", [
    "NIST submission of GCM (McGrew, Viega), test cases 13 to 16",
    "C2SP/wycheproof testvectors_v1/aes_gcm_test.json, Apache-2.0",
], [
    {"id": "GCM test case 13", "key": "00" * 32, "iv": "00" * 12, "aad": "", "msg": "",
     "ct": "", "tag": "530f8afbc74536b9a963b4f1c4cb738b", "result": "valid"},
    {"id": "GCM test case 14", "key": "00" * 32, "iv": "00" * 12, "aad": "", "msg": "00" * 16,
     "ct": "cea7403d4d606b6e074ec5d3baf39d18", "tag": "d0d1c8a799996bf0265b98b5d48ab919",
     "result": "valid"},
    {"id": "GCM test case 15", "key": gcm_key, "iv": gcm_iv, "aad": "", "msg": gcm_text,
     "ct": gcm_sealed, "tag": "b094dac5d93471bdec1a502270e3cc6c", "result": "valid"},
    {"id": "GCM test case 16", "key": gcm_key, "iv": gcm_iv,
     "aad": "feedfacedeadbeeffeedfacedeadbeefabaddad2", "msg": gcm_text[:120],
     "ct": gcm_sealed[:120], "tag": "76fc6ece0f4e1768cddf8853bb2d551b", "result": "valid"},
] + wycheproof("aes_gcm_test", first(6, gcm_kind),
               ["key", "iv", "aad", "msg", "ct", "tag", "result"]))

# AES-256 key wrap
kek = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
key_data = "00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f"
write("aes-256-key-wrap", [
    "RFC 3394, sections 4.3, 4.5 and 4.6",
    "C2SP/wycheproof testvectors_v1/aes_wrap_test.json, Apache-2.0",
], [
    {"id": "RFC 3394 4.3", "key": kek, "msg": key_data[:32],
     "ct": "64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7", "result": "valid"},
    {"id": "RFC 3394 4.5", "key": kek, "msg": key_data[:32] + "0001020304050607",
     "ct": "a8f9bc1612c68b3ff6e6f4fbe30e71e4769c8b80a32cb8958cd5d17d6b254da1",
     "result": "valid"},
    {"id": "RFC 3394 4.6", "key": kek, "msg": key_data,
     "ct": "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21",
     "result": "valid"},
] + wycheproof(
    "aes_wrap_test",
    first(5, lambda g, t: ("other key" if t["tcId"] % 40 == 0 else None) if g["keySize"] != 256
          else (t["result"], tuple(t["flags"]))),
    ["key", "msg", "ct", "result"]))

# AES-256-CBC
cbc_message = (
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
cbc_sealed = (
    "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d"
    "39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b")
write("aes-256-cbc", ["NIST SP 800-38A, appendix F.2.5 and F.2.6; the first block alone too"], [
    {"id": "SP 800-38A F.2.5" + suffix,
     "key": "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
     "iv": "000102030405060708090a0b0c0d0e0f", "msg": cbc_message[:length],
     "ct": cbc_sealed[:length], "result": "valid"}
    for suffix, length in [("", 128), (", first block", 32)]
])

# AES-256-XTS: the data unit number is the tweak
counted = "".join(f"{n:02x}" for n in range(256)) * 2
xts_key = ("2718281828459045235360287471352662497757247093699959574966967627"
           "3141592653589793238462643383279502884197169399375105820974944592")
with open(os.path.join(HERE, "ieee1619.txt")) as file:
    ieee1619 = dict(line.split() for line in file if not line.startswith("#"))
write("aes-256-xts", ["IEEE Std 1619-2007, annex B, vectors 10 and 14; their first blocks too"], [
    {"id": f"IEEE 1619 vector {number}{suffix}", "key": xts_key, "unit": unit,
     "msg": counted[:length], "ct": ieee1619[number][:length], "result": "valid"}
    for number, unit in [("10", 0xFF), ("14", 0xFFFFFFFFFF)]
    for suffix, length in [("", 1024), (", first block", 32)]
])

# HMAC
tests4231 = [
    ("1", "0b" * 20, "4869205468657265",
     "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
     "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
     "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"),
    ("2", "4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
     "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
     "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
     "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"),
    ("6", "aa" * 131,
     "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368"
     "204b6579204669727374",
     "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
     "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352"
     "6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598"),
]
for bits, column in [(256, 3), (512, 4)]:
    write(f"hmac-sha{bits}", [
        "RFC 4231, test cases 1, 2 and 6",
        f"C2SP/wycheproof testvectors_v1/hmac_sha{bits}_test.json, Apache-2.0",
    ], [
        {"id": f"RFC 4231 case {t[0]}", "key": t[1], "msg": t[2], "tag": t[column],
         "result": "valid"} for t in tests4231
    ] + wycheproof(f"hmac_sha{bits}_test",
                   first(3, lambda g, t: (g["keySize"], g["tagSize"], t["result"])),
                   ["key", "msg", "tag", "result"]))

# HKDF
write("hkdf-sha256", [
    "RFC 5869, appendices A.1 to A.3 (Wycheproof's first cases)",
    "C2SP/wycheproof testvectors_v1/hkdf_sha256_test.json, Apache-2.0",
], wycheproof("hkdf_sha256_test",
              first(3, lambda g, t: None if t["size"] in range(200, 10000) else
                    ("RFC 5869" in t["comment"], t["result"], tuple(t["flags"]), t["size"] > 8000)
                    if t["size"] <= 200 or t["result"] == "invalid" else None),
              ["ikm", "salt", "info", "size", "okm", "result"]))
write("hkdf-sha512", ["C2SP/wycheproof testvectors_v1/hkdf_sha512_test.json, Apache-2.0"],
      wycheproof("hkdf_sha512_test",
                 first(3, lambda g, t: (g["keySize"], t["result"], tuple(t["flags"]))
                       if t["size"] <= 200 or t["result"] == "invalid" else None),
                 ["ikm", "salt", "info", "size", "okm", "result"]))

# PBKDF2
password, salt = "70617373776f7264", "73616c74"
long_password = b"passwordPASSWORDpassword".hex()
long_salt = b"saltSALTsaltSALTsaltSALTsaltSALTsalt".hex()
rfc6070_sha512 = [
    (password, salt, 1, 64,
     "867f70cf1ade02cff3752599a3a53dc4af34c7a669815ae5d513554e1c8cf252"
     "c02d470a285a0501bad999bfe943c08f050235d7d68b1da55e63f73b60a57fce"),
    (password, salt, 2, 64,
     "e1d9c16aa681708a45f5c7c4e215ceb66e011a2e9f0040713f18aefdb866d53c"
     "f76cab2868a39b9f7840edce4fef5a82be67335c77a6068e04112754f27ccf4e"),
    (password, salt, 4096, 64,
     "d197b1b33db0143e018b12f3d1d1479e6cdebdcc97c5c0f87f6902e072f457b5"
     "143f30602641b3d55cd335988cb36b84376060ecd532e039b742a239434af2d5"),
    (long_password, long_salt, 4096, 64,
     "8c0511f4c6e597c6ac6315d8f0362e225f3c501495ba23b868c005174dc4ee71"
     "115b59f9e60cd9532fa33e0f75aefe30225c583a186cd82bd4daea9724a3d3b8"),
    (b"pass\0word".hex(), b"sa\0lt".hex(), 4096, 16, "9d9e9c4cd21fe4be24d5b8244c759665"),
]
write("pbkdf2-sha512", [
    "RFC 6070's inputs under HMAC-SHA-512, as widely published; computed again for this table"
    " with a plain-Python PBKDF2",
    "C2SP/wycheproof testvectors_v1/pbkdf2_hmacsha512_test.json, Apache-2.0",
], [
    {"id": f"RFC 6070 inputs, {number}", "password": p, "salt": s, "iterationCount": c,
     "dkLen": length, "dk": dk, "result": "valid"}
    for number, (p, s, c, length, dk) in enumerate(rfc6070_sha512, 1)
] + wycheproof("pbkdf2_hmacsha512_test", first(2, lambda g, t: tuple(t["flags"])),
               ["password", "salt", "iterationCount", "dkLen", "dk", "result"]))
write("pbkdf2-sha256", ["C2SP/wycheproof testvectors_v1/pbkdf2_hmacsha256_test.json, Apache-2.0"],
      wycheproof("pbkdf2_hmacsha256_test",
                 first(2, lambda g, t: None if t["iterationCount"] > 4096 else tuple(t["flags"])),
                 ["password", "salt", "iterationCount", "dkLen", "dk", "result"]))

# SHA-256
write("sha256", ["FIPS 180-4 examples (NIST, SHA256.pdf and SHA2_Additional.pdf)"], [
    {"id": "empty", "msg": "",
     "digest": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"id": "abc", "msg": b"abc".hex(),
     "digest": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"id": "448 bits", "msg": b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".hex(),
     "digest": "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"id": "bd", "msg": "bd",
     "digest": "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b"},
    {"id": "55 zeros", "msg": "00" * 55,
     "digest": "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7"},
    {"id": "64 zeros", "msg": "00" * 64,
     "digest": "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"},
])

# XAES-256-GCM
write("xaes-256-gcm", ["C2SP XAES-256-GCM.md, test vectors"], [
    {"id": f"key {key}", "key": key * 32, "iv": b"ABCDEFGHIJKLMNOPQRSTUVWX".hex(),
     "aad": aad.encode().hex(), "msg": b"XAES-256-GCM".hex(), "ct": sealed[:24],
     "tag": sealed[24:], "result": "valid"}
    for key, aad, sealed in [
        ("01", "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
        ("03", "c2sp.org/XAES-256-GCM",
         "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d")]
])

# JSON Web Encryption: every case with a symmetric key, as it is published
with open(os.path.join(WYCHEPROOF, "json_web_encryption_test.json")) as file:
    jwe_groups = json.load(file)["testGroups"]
write("json-web-encryption", [
    "RFC 7520, section 5.3 (Wycheproof has no case of PBES2)",
    "C2SP/wycheproof testvectors_v1/json_web_encryption_test.json, Apache-2.0",
], [
    {"id": "RFC 7520 5.3", "keyAlgorithm": "PBES2-HS512+A256KW",
     "key": "ZW50cmFwX2_igJNwZXRlcl9sb25n4oCTY3JlZGl0X3R1bg",
     "header": "{\"alg\":\"PBES2-HS512+A256KW\",\"kid\":\"password\","
               "\"p2s\":\"8Q1SzinasR3xchYz6ZZcHA\",\"p2c\":8192}",
     "encryptedKey": "d3qNhUWfqheyPp4H8sjOWsDYajoej4c5Je6rlUtFPWdgtURtmeDV1g",
     "contentKey": "uwsjJXaBK407Qaf0_zpcpmr1Cs0CC50hIUEyGNEt3m0", "result": "valid"},
] + [
    {"id": f"wycheproof json_web_encryption_test {t['tcId']}", "comment": t["comment"],
     "keyAlgorithm": g["private"]["alg"], "key": g["private"]["k"], "jwe": t["jwe"],
     "pt": t.get("pt", ""), "result": t["result"]}
    for g in jwe_groups for t in g["tests"] if g["private"]["kty"] == "oct"
])

# X25519
write("x25519", [
    "RFC 7748, section 6.1",
    "C2SP/wycheproof testvectors_v1/x25519_test.json, Apache-2.0",
], [
    {"id": f"RFC 7748 6.1, {name}", "private": private, "public": public,
     "shared": "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742",
     "result": "valid"}
    for name, private, public in [
        ("Alice", "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
         "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"),
        ("Bob", "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
         "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")]
] + wycheproof("x25519_test", first(3, lambda g, t: (t["result"], tuple(t["flags"]))),
               ["public", "private", "shared", "result"]))

# Ed25519: the published tables have no seeds, so RFC 8032 alone is signed again
with open(os.path.join(WYCHEPROOF, "ed25519_test.json")) as file:
    ed25519_groups = json.load(file)["testGroups"]
ed25519_pick = first(3, lambda g, t: (t["result"], tuple(t["flags"])))
write("ed25519", [
    "RFC 8032, section 7.1, tests 1 to 3",
    "C2SP/wycheproof testvectors_v1/ed25519_test.json, Apache-2.0",
], [
    {"id": f"RFC 8032 7.1, test {number}", "seed": seed, "pk": public, "msg": message,
     "sig": signature, "result": "valid"}
    for number, (seed, public, message, signature) in enumerate([
        ("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
         "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
         "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
         "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"),
        ("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
         "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
         "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
         "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"),
        ("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
         "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
         "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
         "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a")], 1)
] + [
    {"id": f"wycheproof ed25519_test {t['tcId']}", "pk": g["publicKey"]["pk"],
     **{f: t[f] for f in ["msg", "sig", "result"]}}
    for g in ed25519_groups for t in g["tests"] if ed25519_pick(g, t)
])
