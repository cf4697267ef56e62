internal import CSQLite
internal import Synchronization
internal import SystemPackage
internal import VaultCrypto

extension SealedVFS {
  /// Allows `file:NAME?vfs=sealed&keyfile=PATH` and `&keyfd=NUMBER` to name the place of a key.
  ///
  /// The loadable extension calls this for programs that pass nothing but SQL and file names. The
  /// key lives as long as the open file. A program that opens file names from others should not
  /// call this: such a name could point at any file of 32 bytes.
  package static func allowKeyFilesInURIs() {
    URIKey.isAllowed.store(true, ordering: .relaxed)
  }
}

/// The key that an open by URI names: <https://sqlite.org/uri.html>.
enum URIKey {
  fileprivate static let isAllowed = Atomic(false)

  /// The key of a database that SQLite opens: from the registry, or from the place that its URI
  /// names.
  ///
  /// - Returns: nil for a database that is not sealed.
  /// - Throws: fails closed if the URI asks for this VFS without a usable key, or contains a key.
  static func find(database path: UnsafePointer<CChar>) throws(SealedDatabaseError)
    -> RegisteredKey?
  {
    let values = try unsafe parameters(of: path)
    let namesKey = values["keyfile"] != nil || values["keyfd"] != nil
    let source =
      try isAllowed.load(ordering: .relaxed) && namesKey
      ? source(values, path: unsafe String(cString: path)) : nil
    if let registered = unsafe KeyRegistry.find(database: path) { return registered }
    guard let source else {
      if values["vfs"] != SealedVFS.name {
        guard try unsafe isSealedWithoutKey(path) else { return nil }
      }
      throw unsafe SealedDatabaseError(
        .keyNotNamed, path: String(cString: path),
        detail: namesKey ? "this program takes no keys that a URI names" : nil)
    }
    let path = unsafe String(cString: path)
    return try unsafe RegisteredKey(
      path: path, key: source.read(), base: SealedVFS.underlying("unix", for: path),
      newFileID: RandomSource.system.bytes(count: SealedHeader.fileIDByteCount),
      emptyFile: .standIn)
  }

  /// Whether a sealed database is opened as a plain one, which SQLite would call "not a database".
  ///
  /// This is checked only if keys can come from URIs.
  private static func isSealedWithoutKey(
    _ path: UnsafePointer<CChar>
  ) throws(SealedDatabaseError) -> Bool {
    guard isAllowed.load(ordering: .relaxed) else { return false }
    switch try unsafe SealedVFS.inspect(FilePath(String(cString: path))) {
    case .sealed, .newerVersion: return true
    case .absent, .empty, .plainSQLite, .foreign: return false
    }
  }

  /// The parameters of a URI that concern this VFS, each with its first value.
  private static func parameters(
    of path: UnsafePointer<CChar>
  ) throws(SealedDatabaseError) -> [String: String] {
    let isAllowed = isAllowed.load(ordering: .relaxed)
    var values: [String: String] = [:]
    var index: Int32 = 0
    while let name = unsafe sqlite3_uri_key(path, index) {
      index += 1
      let name = unsafe String(cString: name)
      // Refused before any value is read: the value of such a parameter would be the key.
      if isAllowed, forbiddenNames.contains(name.lowercased()) {
        throw unsafe SealedDatabaseError(
          .keyInText, path: String(cString: path), detail: "\(name)=")
      }
      guard ["vfs", "keyfile", "keyfd"].contains(name), values[name] == nil,
        let value = unsafe sqlite3_uri_parameter(path, name)
      else { continue }
      values[name] = unsafe String(cString: value)
    }
    return values
  }

  /// The parameters by which other encrypting SQLite builds take a key in a URI.
  private static let forbiddenNames: Set<String> = [
    "key", "hexkey", "textkey", "passphrase", "password",
  ]

  private static func source(
    _ values: [String: String], path: String
  ) throws(SealedDatabaseError) -> KeySource {
    switch (values["keyfile"], values["keyfd"]) {
    case (let file?, nil) where !file.isEmpty: return .file(FilePath(file))
    case (nil, let number?):
      guard let number = Int32(number), number >= 0 else {
        throw SealedDatabaseError(
          .keyNotNamed, path: path, detail: "keyfd must be the number of a descriptor")
      }
      return .descriptor(number)
    case (_?, _?):
      throw SealedDatabaseError(.keyNotNamed, path: path, detail: "the URI names two keys")
    default: throw SealedDatabaseError(.keyNotNamed, path: path, detail: "keyfile names no file")
    }
  }
}
