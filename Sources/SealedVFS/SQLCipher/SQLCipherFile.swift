internal import CSQLite
public import SystemPackage
internal import VaultCrypto

/// An SQLCipher 4 database: read in place, or written whole into an empty file.
///
/// Its write-ahead log and journal are never opened. If one of them holds changes, the file alone
/// is not the whole database, and reading is refused.
final class SQLCipherFile: PagedFile {
  /// Whether the file was empty when it was opened; only such a file can be written.
  private(set) var isNew = false

  /// Unused: this format draws its own initialization vectors.
  private var nonces = NonceSequence()

  init(base: BaseFile, registered: RegisteredKey) throws(CryptoError) {
    super.init(
      base: base, registered: registered,
      codec: try SQLCipherCodec(pageKey: registered.key, salt: registered.newFileID))
  }

  /// Determines whether the file is new; call it after opening.
  func determineWhetherNew() throws(ResultCode) {
    isNew = try base.byteCount() == 0
  }

  override func identify(_ identity: [UInt8]) throws(ResultCode) {
    if isNew { return }  // SQLite can write other pages before page 1
    if identity == PageLayout.plainIdentity { throw fail(.plainDatabase, SQLITE_NOTADB) }
    guard identity == codec.identity else { throw wrongKeyOrFormat() }
    isIdentityKnown = true
  }

  private func wrongKeyOrFormat() -> ResultCode { fail(.wrongKeyOrNotSQLCipher, SQLITE_NOTADB) }

  /// Reports a page 1 that does not open as a wrong key or format: the format has no key check.
  override func answerDamage(of number: UInt32) -> ResultCode {
    number == 1 ? wrongKeyOrFormat() : super.answerDamage(of: number)
  }

  override func read(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    try unsafe super.read(target, byteCount, at: offset)
    let versions = 18..<20  // the write and read versions; 2 means WAL mode
    if !isNew && offset == 0 && byteCount >= versions.upperBound {
      for index in versions { unsafe target.storeBytes(of: 1, toByteOffset: index, as: UInt8.self) }
    }
  }

  override func writePage(_ number: UInt32, from source: UnsafeRawPointer) throws(ResultCode) {
    guard isNew else { throw ResultCode(SQLITE_READONLY) }
    if number == 1, let fault = unsafe codec.fault(inPageOne: source) {
      throw fail(fault, SQLITE_IOERR_WRITE)
    }
    let hasRoom = try unsafe ResultCode.translatingCryptoErrors(
      codec.seal(source, number: number, into: sealed.pointer, nonces: &nonces))
    guard hasRoom else {
      throw fail(.reserveInUse, page: number, SQLITE_IOERR_WRITE)
    }
    isIdentityKnown = isIdentityKnown || number == 1
    try unsafe base.write(
      sealed.pointer, PageLayout.byteCount, at: PageLayout.offset(ofPage: number))
  }

  override func lock(_ level: Int32) throws(ResultCode) {
    try super.lock(level)
    guard level == SQLITE_LOCK_SHARED, !isNew else { return }
    do throws(SealedDatabaseError) {
      try unsafe DatabaseFiles(path: registered.path, vfs: registered.base).requireClosed()
    } catch {
      try? base.unlock(SQLITE_LOCK_NONE)  // report the refusal, not this error
      throw record(error, SQLITE_IOERR_LOCK)
    }
  }
}

extension SealedVFS {
  /// Registers a key for the SQLCipher 4 database at `path`, and installs the VFS.
  ///
  /// SQLite then reads the database in place, by its plain path, and cannot write to it. A file
  /// that is empty or absent can be written once, with `journal_mode=OFF` and the reserved bytes of
  /// ``FileFormat/sqlcipher4``. Deriving a key from a passphrase takes a tenth of a second or more.
  ///
  /// - Throws: `plainDatabase`; `wrongKeyOrNotSQLCipher` for a file shorter than a page;
  ///   `invalidArgument`; `inputOutput`. A wrong key is found only when the database is first read.
  public static func register(
    sqlcipher4 key: borrowing SQLCipherKey, at path: FilePath, over base: String = "unix"
  ) throws(SealedDatabaseError) -> KeyRegistration {
    try install()
    let files = try DatabaseFiles(path, over: base)
    let path = files.path
    let salt =
      try storedSalt(of: files) ?? key.salt
      ?? RandomSource.system.bytes(count: SQLCipherLayout.saltByteCount)
    if let given = key.salt, given != salt {
      throw SealedDatabaseError(.wrongKeyOrNotSQLCipher, path: path)
    }
    let pageKey: SecretBytes
    do throws(CryptoError) {
      pageKey = try key.pageKey(salt: salt)
    } catch {
      throw SealedDatabaseError(error, path: path)
    }
    return unsafe KeyRegistration(
      RegisteredKey(
        path: path, format: .sqlcipher4, key: pageKey, base: files.vfs, newFileID: salt,
        emptyFile: .bare))
  }

  /// The first 16 bytes of a file; nil if it is empty or absent.
  private static func storedSalt(
    of files: DatabaseFiles
  ) throws(SealedDatabaseError) -> [UInt8]? {
    guard let file = try files.open() else { return nil }
    let byteCount = try file.byteCount()
    if byteCount == 0 { return nil }
    guard byteCount >= Int64(PageLayout.byteCount) else {
      throw SealedDatabaseError(.wrongKeyOrNotSQLCipher, path: files.path)
    }
    let bytes = try file.bytes(SQLCipherLayout.saltByteCount, at: 0)
    if bytes == PageLayout.plainIdentity {
      throw SealedDatabaseError(.plainDatabase, path: files.path)
    }
    return bytes
  }
}
