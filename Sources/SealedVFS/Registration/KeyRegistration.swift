/// A promise that the database at a path is sealed under a key, for as long as this object lives.
///
/// Keep it as long as connections may be *opened*: a `DatabasePool` opens readers when it needs
/// them. Connections that are open keep the key by themselves. When this object goes, the path is
/// no longer registered; after the last connection the key is wiped.
public final class KeyRegistration: Sendable {
  private let registered: RegisteredKey

  init(_ registered: RegisteredKey) {
    self.registered = registered
    KeyRegistry.add(registered)
  }

  deinit {
    KeyRegistry.remove(registered)
  }

  /// Why a call on one of the database's files failed last, more precisely than SQLite's result
  /// code says; nil when none has.
  ///
  /// It stays until the next one.
  public var fault: SealedFileError? { registered.fault }

  /// What the last recovery of the write-ahead log left out; nil when nothing.
  ///
  /// It was written under the log's current salts: a torn tail after a power cut, or damage.
  public var discardedLogTail: DiscardedLogTail? { registered.discardedTail }
}
