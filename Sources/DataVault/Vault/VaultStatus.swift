internal import FileLayer

/// A vault's public information, which needs no password.
public struct VaultStatus: Sendable, Equatable {
  /// The version of the file's format.
  public let formatVersion: Int

  /// False only under the standard credentials.
  public let isSecured: Bool

  /// The number of consecutive failed attempts that are allowed; 0 means no limit.
  ///
  /// One more failed attempt deletes the vault.
  public let retryLimit: Int

  /// The database whose key the vault holds.
  public let binding: DatabaseBinding?

  /// The slots; each one alone opens the vault.
  public let slots: [Slot]

  /// Whether the other properties are known to be authentic.
  ///
  /// They are after the vault has been opened. Before, anyone who can write the file could have
  /// changed them.
  public let isAuthenticated: Bool

  /// The time at which a slot last opened the vault, as time since 1970-01-01 00:00 UTC; nil when
  /// it is unknown.
  ///
  /// Openings by the standard credentials or by a session are not recorded. This and the next two
  /// properties come from an unencrypted file of their own and are never authenticated.
  public let lastOpening: Duration?

  /// The number of failed attempts since then, over all processes.
  public let failedAttemptCount: Int

  /// The time until the vault accepts an attempt; zero when it accepts one now.
  public let retryDelay: Duration

  /// A slot: one way to open a vault.
  public struct Slot: Sendable, Equatable {
    /// The kinds of secret that slots take; later versions can add kinds.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
      /// The kind's name, stable for programs.
      public let description: String
      /// The kind in words, for messages: it follows "a".
      let words: String

      /// A password, with an optional salt.
      public static let password = Kind(description: "password", words: "password")
      /// A printed code.
      public static let recoveryCode = Kind(description: "recoveryCode", words: "recovery code")
      /// A file of 32 bytes.
      public static let keyFile = Kind(description: "keyFile", words: "key file")
    }

    /// The kind of secret that opens the slot.
    public let kind: Kind
    /// The slot's name; a password has none.
    public let name: String?
    /// The unique name of the slot: `password`, `recovery:NAME` or `keyfile:NAME`.
    public let identifier: String
    /// The PBKDF2 iterations of a password slot.
    public let iterationCount: Int?
  }
}

extension VaultStatus {
  init(
    _ file: VaultFile, isAuthenticated: Bool, attempts record: AttemptRecord, now: UnixTime
  ) {
    var record = record
    record.limitWait(at: now)
    // The last millisecond of the year 9999: RFC 3339 has no later date.
    let lastOpening = record.openedAtMilliseconds.map { min($0, 253_402_300_799_999) }
    self.init(
      formatVersion: ClearMembers.version, isSecured: file.clear.isSecured,
      retryLimit: file.clear.retryLimit, binding: file.clear.binding,
      slots: file.key.slots.map(Slot.init), isAuthenticated: isAuthenticated,
      lastOpening: lastOpening.map(Duration.milliseconds),
      failedAttemptCount: record.failureCount, retryDelay: record.wait(at: now))
  }
}

extension VaultStatus.Slot {
  fileprivate init(_ slot: KeySlot) {
    self.init(
      kind: slot.secretKind, name: slot.name, identifier: slot.identifier,
      iterationCount: slot.kind.iterationCount)
  }
}

/// The database that a vault belongs to.
public struct DatabaseBinding: Sendable, Equatable {
  /// The progress of the binding.
  public enum State: String, Sendable {
    /// The vault holds the key; the database might not be in its place yet.
    case creating
    /// The database has been in its place.
    case bound
  }

  /// The 8 bytes of the file id in the database's header.
  public let databaseID: [UInt8]
  /// The progress of the binding.
  public let state: State

  package init(databaseID: [UInt8], state: State) {
    self.databaseID = databaseID
    self.state = state
  }
}
