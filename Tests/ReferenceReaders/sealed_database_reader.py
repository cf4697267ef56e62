#!/usr/bin/env python3
"""Reads a sealed database, written only from docs/reference/sealed-database-format.md, without code of this library.

    sealed_database_reader.py open DATABASE KEY_HEX OUT    writes the plain SQLite database to OUT

It rolls a hot journal back and applies the committed frames of a log, in the copy. DATABASE and the files
beside it do not change. On a fault it prints the reason in one line, with exit code 1.
"""
import os, re, stat, struct, sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

PAGE, CONTENT, LOCK_PAGE = 4096, 4056, 262145
PLAIN_MAGIC = b"SQLite format 3\0"
SQLITE_MAGIC = bytes.fromhex("d9d505f920a163d7")


class Refused(Exception):
    pass


def u32(number):
    return struct.pack(">I", number)


def derive(key, file_id, name, length):
    return HKDF(hashes.SHA512(), length, file_id, b"datavault/" + name).derive(key)


def aes(key, block):
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(block) + encryptor.finalize()


def xaes_key(key, nonce):
    """The key that C2SP XAES-256-GCM derives from a nonce's first half, by AES-ECB."""
    zero = int.from_bytes(aes(key, bytes(16)), "big")
    subkey = zero << 1 & (1 << 128) - 1
    if zero >> 127:
        subkey ^= 0x87
    halves = []
    for counter in (1, 2):
        block = bytes([0, counter, 0x58, 0]) + nonce[:12]
        halves.append(aes(key, (int.from_bytes(block, "big") ^ subkey).to_bytes(16, "big")))
    return b"".join(halves)


def xaes_open(key, nonce, ciphertext, tag, aad):
    return AESGCM(xaes_key(key, nonce)).decrypt(nonce[12:], ciphertext + tag, aad)


class Sealed:
    def __init__(self, key, header):
        if header[:3] != b"\x8eDV":
            raise Refused("not a sealed database")
        if header[3] != 1:
            raise Refused("version %d" % header[3])
        self.header, self.file_id = header, header[8:16]
        if derive(key, self.file_id, b"key-check", 4) != header[4:8]:
            raise Refused("wrong key")
        self.keys = {1: derive(key, self.file_id, b"page", 32),
                     2: derive(key, self.file_id, b"journal", 32)}
        self.frame_key = derive(key, self.file_id, b"wal-header", 64)

    def open_page(self, role, number, sealed):
        """Opens a page; page 1 opens under the header of the file, not under its own first 16 bytes."""
        start = 16 if number == 1 else 0
        aad = bytes([role]) + self.file_id + u32(number) + (self.header if number == 1 else b"")
        content = xaes_open(
            self.keys[role], sealed[4056:4080], sealed[start:CONTENT], sealed[4080:], aad)
        return (PLAIN_MAGIC if number == 1 else b"") + content + bytes(40)

    def open_frame_header(self, header, offset):
        tweak = offset.to_bytes(16, "little")
        decryptor = Cipher(algorithms.AES(self.frame_key), modes.XTS(tweak)).decryptor()
        return header[:8] + decryptor.update(header[8:24]) + decryptor.finalize()

    def open_journal_header(self, header):
        aad = b"\x02" + self.file_id + u32(0) + header[:8]
        words = xaes_open(self.keys[2], header[28:52], header[8:28], header[52:68], aad)
        return struct.unpack(">5I", words)


def checksum(data, big_endian, start):
    words = struct.unpack((">" if big_endian else "<") + "%dI" % (len(data) // 4), data)
    first, second = start
    for index in range(0, len(words), 2):
        first = first + words[index] + second & 0xFFFFFFFF
        second = second + words[index + 1] + first & 0xFFFFFFFF
    return first, second


def super_journal(journal):
    """The super-journal that the end of a journal names; None if it names none."""
    if len(journal) < 16 or journal[-8:] != SQLITE_MAGIC:
        return None
    length, total = struct.unpack(">2I", journal[-16:-8])
    if not 1 <= length <= min(512, len(journal) - 16):
        return None
    name = journal[-16 - length:-16]
    if name[0] == 0:
        return None
    if sum(byte - 256 * (byte > 127) for byte in name) & 0xFFFFFFFF != total:
        return None
    return name


def has_committed(journal, path):
    """Whether a hot journal belongs to a committed transaction over several databases."""
    name = super_journal(journal)
    if name is None:
        return False
    if not re.fullmatch(rb"/[^\0]+-mj[0-9A-F]{6}9[0-9A-F]{2}", name, re.DOTALL):
        raise Refused("super-journal name")
    try:
        if not stat.S_ISREG(os.lstat(name).st_mode):
            raise Refused("super-journal is not a file")
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError as error:
        raise Refused(f"super-journal: {error.strerror}") from error
    if os.fsencode(os.path.realpath(path)) + b"-journal" not in read(name).split(b"\0")[:-1]:
        raise Refused("super-journal does not list the journal")
    return False


def rolled_back(sealed, pages, journal, path):
    """The pages before the transaction of the hot journal."""
    offset, is_first = 0, True
    if journal[:4] == b"\0DVJ" and has_committed(journal, path):
        return pages
    while offset + 512 <= len(journal) and journal[offset:offset + 4] == b"\0DVJ":
        if journal[offset + 4] != 1:
            raise Refused("journal version")
        count, seed, page_count, sector, page_size = sealed.open_journal_header(
            journal[offset:offset + 68])
        if (sector, page_size) != (512, PAGE):
            raise Refused("journal geometry")
        if is_first:
            pages = {number: page for number, page in pages.items() if number <= page_count}
            original, done, is_first = page_count, set(), False
        vouched = journal[offset + 5] == 1 and count != 0xFFFFFFFF
        offset += 512
        if count == 0xFFFFFFFF:
            count = (len(journal) - offset) // 4104
        for _ in range(count):
            number = struct.unpack(">I", journal[offset:offset + 4])[0]
            if number in (0, LOCK_PAGE):
                return pages
            if not vouched and journal[offset + 4100:offset + 4104] != struct.pack(">I", seed):
                return pages
            try:
                page = sealed.open_page(2, number, journal[offset + 4:offset + 4100])
            except InvalidTag:
                if vouched:
                    raise Refused("journal record of page %d" % number)
                return pages
            if number <= original and number not in done:
                pages[number] = page
                done.add(number)
            offset += 4104
        offset = (offset + 511) // 512 * 512
    return pages


def with_log(sealed, pages, log):
    """The pages after the commits in the log, and the database's size after the last one."""
    if len(log) <= 32:
        return pages, None
    magic, version, page_size = struct.unpack(">3I", log[:12])
    big_endian = magic == 0x377F0683
    if magic & ~1 != 0x377F0682 or checksum(log[:24], big_endian, (0, 0)) != struct.unpack(
            ">2I", log[24:32]):
        return pages, None
    if version != 3007001 or page_size != PAGE:
        raise Refused("not a sealed log")
    running = checksum(log[:4] + u32(3007000) + log[8:24], big_endian, (0, 0))
    pending, size = {}, None
    for offset in range(32, len(log) - 4119, 4120):
        header = sealed.open_frame_header(log[offset:offset + 24], offset)
        number, commit = struct.unpack(">2I", header[:8])
        if header[8:16] != log[16:24] or number == 0:
            break
        try:
            page = sealed.open_page(1, number, log[offset + 24:offset + 4120])
        except InvalidTag:
            break
        running = checksum(header[:8] + page, big_endian, running)
        if struct.pack(">2I", *running) != header[16:24]:
            break
        pending[number] = page
        if commit:
            pages.update(pending)
            pending, size = {}, commit
    return pages, size


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def open_database(path, key):
    data, journal, log = read(path), read(path + "-journal"), read(path + "-wal")
    sealed = Sealed(key, data[:16])
    pages, damaged = {}, set()
    for number in range(1, len(data) // PAGE + 1):
        page = data[(number - 1) * PAGE:number * PAGE]
        if number == LOCK_PAGE:
            continue
        try:
            pages[number] = sealed.open_page(1, number, page)
        except InvalidTag:
            damaged.add(number)
    pages = rolled_back(sealed, pages, journal, path)
    pages, size = with_log(sealed, pages, log)
    size = size or max(pages, default=0)
    lost = [number for number in damaged if number <= size and number not in pages]
    if lost:
        raise Refused("page %d" % min(lost))
    first = pages.get(1)
    if first and first[24:28] == first[92:96] and struct.unpack(">I", first[28:32])[0] > size:
        raise Refused("truncated")
    plain = bytearray(b"".join(pages.get(number, bytes(PAGE)) for number in range(1, size + 1)))
    if plain:
        plain[18:20] = b"\1\1"  # the copy has no log beside it
    return bytes(plain)


def main():
    if len(sys.argv) != 5 or sys.argv[1] != "open":
        sys.exit(__doc__)
    try:
        plain = open_database(sys.argv[2], bytes.fromhex(sys.argv[3]))
    except (Refused, InvalidTag) as error:
        sys.exit("refused: %s" % (error or "it does not authenticate"))
    with open(sys.argv[4], "wb") as file:
        file.write(plain)


if __name__ == "__main__":
    main()
