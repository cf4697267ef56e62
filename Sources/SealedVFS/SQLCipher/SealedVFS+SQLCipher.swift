internal import CSQLite
public import SystemPackage
internal import VaultCrypto

extension SealedVFS {
  /// Registers a key for the SQLCipher 4 database at `path`, and installs the VFS.
  ///
  /// SQLite then reads the database where it lies, by its plain path, and cannot write to it; a file
  /// that is empty or absent can be written once, with `journal_mode=OFF` and the reserve of
  /// ``FileFormat/sqlcipher4``. A passphrase is stretched here: that takes a tenth of a second or more.
  ///
  /// - Throws: `plainDatabase`, `wrongKeyOrNotSQLCipher` for a file shorter than a page; a key
  ///   that does not fit shows when the database is first read. `invalidArgument`, `ioFailed`.
  public static func register(
    sqlcipher4 key: borrowing SQLCipherKey, at path: FilePath, over base: String = "unix"
  ) throws(SealedFileError) -> KeyRegistration {
    try install()
    let path = try fullPath(path)
    guard base != name, let vfs = unsafe sqlite3_vfs_find(base) else {
      throw SealedFileError(.invalidArgument, path: path, detail: "there is no VFS \(base)")
    }
    let salt =
      try unsafe storedSalt(of: path, over: vfs) ?? key.salt
      ?? RandomSource.system.bytes(count: SQLCipherLayout.saltByteCount)
    if let given = key.salt, given != salt {
      throw SealedFileError(.wrongKeyOrNotSQLCipher, path: path)
    }
    guard let pageKey = try? key.pageKey(salt: salt) else {
      throw SealedFileError(.ioFailed, path: path, detail: "the key cannot be derived")
    }
    return unsafe KeyRegistration(
      RegisteredKey(
        path: path, format: .sqlcipher4, key: pageKey, base: vfs, newFileID: salt,
        emptyFile: .bare))
  }

  /// The first 16 bytes of a file; nil where there are none yet.
  private static func storedSalt(
    of path: String, over vfs: UnsafeMutablePointer<sqlite3_vfs>
  ) throws(SealedFileError) -> [UInt8]? {
    guard let file = try unsafe HeldFile(path, kind: SQLITE_OPEN_MAIN_DB, over: vfs) else {
      return nil
    }
    let byteCount = try file.byteCount()
    if byteCount == 0 { return nil }
    let salt = Scratch(byteCount: SQLCipherLayout.saltByteCount)
    guard byteCount >= Int64(PageLayout.byteCount),
      unsafe file.read(salt.pointer, salt.byteCount, at: 0)
    else { throw SealedFileError(.wrongKeyOrNotSQLCipher, path: path) }
    let bytes = unsafe Array(salt.bytes(0..<salt.byteCount))
    if bytes == HeaderReading.plainMagic { throw SealedFileError(.plainDatabase, path: path) }
    return bytes
  }
}
