#!/usr/bin/env python3
"""Removes checks from the reference readers, one at a time, and expects exactly the named fixtures to change.

    mutations.py [databases] [vaults] [homes] [sizes] [records]

A fixture notices a removed check if its outcome changes. A reader can lack a check that no fixture notices. The
totals come last. The exit code is 1 unless exactly the named fixtures notice each check.
"""
import functools, os, sqlite3, subprocess, sys, tempfile, types

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "../../Fixtures")
PASSWORD = b"correct horse battery staple"
PAGE_TAG = "page = sealed.open_page(1, number, log[offset + 24:offset + 4120])"
WAITING = """        if commit:
            pages.update(pending)
            pending, size = {}, commit
"""

# The text in the reader, its replacement, and the fixtures that notice.
DATABASES = {
    "version of the log": (
        "if version != 3007001 or", "if", ["log-version-of-sqlite"]),
    "frame salts, the first": (
        "header[8:16] != log[16:24]", "header[12:16] != log[20:24]", ["log-frame-first-salt"]),
    "frame salts, the second": (
        "header[8:16] != log[16:24]", "header[8:12] != log[16:20]", ["log-frame-second-salt"]),
    "page 1 under the file's own header": (
        '(self.header if number == 1 else b"")', '(sealed[:16] if number == 1 else b"")',
        ["log-first-page-header"]),
    "frame checksum": (
        'if struct.pack(">2I", *running) != header[16:24]:', "if False:", ["log-frame-checksum"]),
    "tag of a frame's page": (
        PAGE_TAG, PAGE_TAG.replace("sealed.", "without_tag(sealed)."), ["log-frame-tag"]),
    "waiting for the commit": (
        WAITING, "        pages[number], size = page, commit or size\n", ["log-last-commit-open"]),
    "log header checksum": (
        "or checksum(log[:24], big_endian, (0, 0)) != struct.unpack(\n"
        '            ">2I", log[24:32])', "", ["log-header-checksum"]),
    "journal record seeds": (
        'if not vouched and journal[offset + 4100:offset + 4104] != struct.pack(">I", seed):',
        "if False:", ["hot-journal-before-an-earlier-one"]),
    "segments after the first": (
        "        offset = (offset + 511) // 512 * 512\n", "        return pages\n",
        ["hot-journal-of-two-segments"]),
    "the journal": (
        "pages = rolled_back(sealed, pages, journal, path)", "pass", [
            "hot-journal-before-an-earlier-one", "hot-journal-of-deletions",
            "hot-journal-of-two-segments", "journal-header", "journal-record",
            "spilled-first-transaction", "super-journal-name"]),
    "name of a super-journal": (
        'if not re.fullmatch(rb"/[^\\0]+-mj[0-9A-F]{6}9[0-9A-F]{2}", name, re.DOTALL):', "if False:",
        ["super-journal-name"]),
}
VAULTS = {
    "digest": (
        "assert decode(file[-46:-3].decode()) == hashlib.sha256(file[:-56]).digest()", "assert True",
        ["digest-flipped"]),
    "tag of the key": (
        'jwe.decrypt_json(vault["key"]', 'without_tag(jwe.decrypt_json, vault["key"]',
        ["key-tag-flipped"]),
    "tag of the contents": (
        'jwe.decrypt_json(vault["contents"]', 'without_tag(jwe.decrypt_json, vault["contents"]',
        ["contents-tag-flipped"]),
    "id shape": (
        'assert re.fullmatch("[a-z0-9][a-z0-9_-]{0,63}", clear["vault"])', "assert True",
        ["Capital-in-the-id", "_underscore-first-in-the-id", "id-of-65-characters-" + "x" * 45]),
}
# Checks for vaults that are too large to store as fixtures.
SIZES = {
    "size of the plaintext": ("len(plaintext) <= 32 << 20", "True", ["plaintext-too-large"]),
    "size of an item": ("len(value) <= 1 << 20", "True", ["item-too-large"]),
    "size of all items": ("total <= 16 << 20", "True", ["items-too-large-together"]),
    "number of data keys": ("len(keys) <= 4096 * 32", "True", ["data-keys-too-many"]),
}
HOMES = {
    "anchor id": (
        'assert vault.decode(anchor["id"]) in known', "assert True", ["anchor-id-unknown"]),
    "anchor commit": (
        'assert number == anchor["commit"]', "assert True", ["anchor-commit-of-another"]),
    "commit number of the database": (
        'assert commit_number >= anchor["commit"]', "assert True",
        ["commit-number-behind-the-anchor"]),
}
RECORDS = {
    "version": (" and record[0] == 1", "", ["newer-version", "version-zero"]),
    "flags of a part": ("refuse_unless(flags <= 3)", "pass", ["part-with-flag-four"]),
    "other flags": ("refuse_unless(flag <= 1)\n        return flag == 1", "return flag > 0", [
        "commit-flag-two", "content-flag-two", "epoch-flag-two", "join-flag-two",
        "operation-flag-two", "settlement-due-flag-two"]),
    "end of a record": ("    fields.end()\n    return author", "    return author", [
        "byte-behind-the-last-field", "commit-of-fewer-than-it-has"]),
    "end of an operation": ("    f.end()\n", "", ["operation-byte-behind-the-end"]),
    "lengths": ("refuse_unless(count <= len(self.data))", "pass", [
        "commit-content-longer-than-the-record", "content-cut-in-a-time", "content-empty",
        "content-header-without-a-value", "content-headers-longer-than-it", "cut-in-the-last-field",
        "cut-in-the-time", "operation-cut", "operation-of-more-than-it-has"]),
    "range of a place": ("refuse_unless(number < 1 << 63)", "pass", ["operation-place-of-64-bits"]),
    "names of an operation": (
        "refuse_unless(kind in (9, 10, 11, 12) or all(found[:2 if kind in (1, 2, 3, 4, 13) else 1]))",
        "pass", ["operation-without-a-channel", "operation-without-a-consumer"]),
    "a cancellation's list": (
        "refuse_unless(kind != 7 or found[1] is not None)", "pass", ["operation-cancel-without-a-list"]),
    "outcome": ("refuse_unless(kind < len(OUTCOMES))", "kind %= 5", ["settlement-outcome-five"]),
    "priority": ("refuse_unless(priority <= 9)", "pass", ["content-priority-ten"]),
    "priority beside an ordering key": (
        ' and (ordering is None or found["priority"] == 4)', "",
        ["content-priority-five-with-an-ordering-key"]),
    "a header twice": (" and name not in headers", "", ["content-header-twice"]),
}


def load_reader(name, old="", new="", **names):
    """A reference reader as a separate module, with one piece of its text replaced."""
    with open(os.path.join(HERE, name)) as file:
        text = file.read()
    assert not old or text.count(old) == 1, "%s contains this %d times: %s" % (name, text.count(old), old)
    module = types.ModuleType(name)
    module.__dict__.update(names)
    exec(compile(text.replace(old, new) if old else text, name, "exec"), module.__dict__)
    return module


def plaintext_of(key, nonce, ciphertext):
    """GCM without its tag: CTR mode from the second block on."""
    decryptor = Cipher(algorithms.AES(key), modes.CTR(nonce + b"\0\0\0\2")).decryptor()
    return decryptor.update(ciphertext)


def database_without_tag(sealed):
    """A reader of this database that checks no tag."""
    lenient = types.SimpleNamespace(header=sealed.header, file_id=sealed.file_id, keys=sealed.keys)
    module = load_reader("sealed_database_reader.py")
    module.xaes_open = lambda key, nonce, ciphertext, tag, aad: plaintext_of(
        module.xaes_key(key, nonce), nonce[12:], ciphertext)
    lenient.open_page = functools.partial(module.Sealed.open_page, lenient)
    return lenient


def jwe_without_tag(decrypt, *arguments, **options):
    """joserfc without the check of A256GCM's tag."""
    from joserfc._rfc7518.jwe_encs import GCMEncModel
    kept = GCMEncModel.decrypt
    GCMEncModel.decrypt = lambda self, ciphertext, tag, cek, iv, aad: plaintext_of(
        cek, iv, ciphertext if len(tag) == 16 else None)
    try:
        return decrypt(*arguments, **options)
    finally:
        GCMEncModel.decrypt = kept


def outcome(read):
    """The data that a reader read, or "refused"; the reasons are not compared."""
    try:
        return read()
    except Exception:
        return "refused"


def rows(module, path):
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "plain.db")
        with open(copy, "wb") as file:
            file.write(module.open_database(path, b"\x4b" * 32))
        connection = sqlite3.connect(copy)
        [tables] = connection.execute("SELECT count(*) FROM sqlite_master")
        found = tables[0] and connection.execute("SELECT count(*), max(id) FROM t").fetchall()
        [intact] = connection.execute("PRAGMA integrity_check").fetchone()
        return found, intact


def databases():
    folder = os.path.join(FIXTURES, "databases")
    names = [name[:-3] for name in sorted(os.listdir(folder))
             if name.endswith(".db") and not name.startswith("sqlcipher4")]

    def outcomes(old="", new=""):
        module = load_reader("sealed_database_reader.py", old, new, without_tag=database_without_tag)
        return {name: outcome(lambda: rows(module, os.path.join(folder, name + ".db")))
                for name in names}

    return try_each(DATABASES, outcomes)


def derive_once():
    """Makes joserfc derive each password's key once, because nearly all fixtures share one."""
    from joserfc._rfc7518 import jwe_algs
    derivation = jwe_algs.PBKDF2HMAC
    derived = functools.cache(
        lambda password, salt, count: derivation(jwe_algs.hashes.SHA512(), 32, salt, count).derive(password))

    class Memory:
        def __init__(self, algorithm, length, salt, iterations, backend=None):
            self.salt, self.count = salt, iterations

        def derive(self, password):
            return derived(password, self.salt, self.count)

    jwe_algs.PBKDF2HMAC = Memory


def vaults():
    return try_vaults(VAULTS, os.path.join(FIXTURES, "vaults/negative"))


def sizes():
    with tempfile.TemporaryDirectory() as folder:
        maker = os.path.join(FIXTURES, "vaults/make.py")
        subprocess.run([sys.executable, maker, folder], check=True)
        return try_vaults(SIZES, folder)


def try_vaults(mutations, folder):
    derive_once()
    files = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            files[name[:-6]] = file.read()

    def outcomes(old="", new=""):
        module = load_reader("vault_reader.py", old, new, without_tag=jwe_without_tag)
        return {name: outcome(lambda: bool(module.open_vault(file, "password", PASSWORD, b"")))
                for name, file in files.items()}

    return try_each(mutations, outcomes)


def homes():
    derive_once()
    folder = os.path.join(FIXTURES, "homes")
    names = [name for name in sorted(os.listdir(folder)) if os.path.isdir(os.path.join(folder, name))]

    def outcomes(old="", new=""):
        module = load_reader("home_reader.py", old, new)
        return {name: outcome(lambda: module.open_home(os.path.join(folder, name), PASSWORD))
                for name in names}

    return try_each(HOMES, outcomes)


def records():
    folder = os.path.join(FIXTURES, "replication/negative")
    files = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".record"):
            with open(os.path.join(folder, name), "rb") as file:
                files[name[:-7]] = file.read()
    with open(os.path.join(FIXTURES, "replication/positive/two-keys.ring"), "rb") as file:
        ring = file.read()

    def outcomes(old="", new=""):
        module = load_reader("replication_reader.py", old, new)
        return {name: outcome(lambda: bool(module.read(module.Ring(ring), data, {})))
                for name, data in files.items()}

    return try_each(RECORDS, outcomes)


def try_each(mutations, outcomes):
    """The number of checks, and of those that other fixtures than the named ones noticed."""
    whole, wrong = outcomes(), 0
    for check, (old, new, expected) in mutations.items():
        found = [name for name, seen in sorted(outcomes(old, new).items()) if seen != whole[name]]
        if found != sorted(expected):
            wrong += 1
            print("without %s: noticed by %s, expected %s" % (check, found, sorted(expected)))
    return len(mutations), wrong


def main():
    kinds = {"databases": databases, "vaults": vaults, "homes": homes, "sizes": sizes, "records": records}
    totals = [kinds[name]() for name in sys.argv[1:] or kinds]
    checks, wrong = map(sum, zip(*totals))
    print("removed checks: %d, not noticed as expected: %d" % (checks, wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    main()
