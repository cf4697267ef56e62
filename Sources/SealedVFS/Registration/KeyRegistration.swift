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
  public var fault: SealedFileError? { registered.faults.newest }

  /// Why a call failed that SQLite reports by an extended result code, through whichever connection;
  /// nil when the VFS found nothing that SQLite reports so.
  public func fault(reportedAs resultCode: Int32) -> SealedFileError? {
    registered.faults.newest(reportedAs: resultCode)
  }

  /// Takes the faults of a connection for its own from now on.
  ///
  /// xOpen finds the *last* registration of a path; whoever made this connection for an earlier one
  /// says so.
  package func adopt(_ connection: OpaquePointer) {
    unsafe SealedConnection.file(of: connection, "main")?.faults.move(to: registered.faults)
  }

  /// Has a connection keep the log as it closes, where any connection of this registration has met damage: what
  /// the log holds may be all that is left of some pages.
  package func keepLogAfterDamage(on connection: OpaquePointer) {
    guard registered.faults.hasMetDamage else { return }
    unsafe SealedConnection.file(of: connection, "main")?.hasMetDamage = true
  }

  /// What the last recovery of the write-ahead log left out; nil when nothing.
  ///
  /// It was written under the log's current salts: a torn tail after a power cut, or damage.
  public var discardedLogTail: DiscardedLogTail? { registered.discardedTail }
}
