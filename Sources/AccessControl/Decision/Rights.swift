/// What a grant or a token allows.
///
/// The values are the bits of PubNub's tokens. `lease` is ours, and its bit is above theirs.
public struct Rights: OptionSet, Sendable, Hashable, CustomStringConvertible {
  /// The bits.
  public let rawValue: UInt16

  /// Takes bits; those above the known rights are dropped.
  public init(rawValue: UInt16) { self.rawValue = rawValue & 0x1FF }

  /// Subscribe, presence, state and history.
  public static let read = Rights(rawValue: 1)
  /// Publish, signal and fire.
  public static let write = Rights(rawValue: 2)
  /// Change channel groups; make consumers, work on dead letters and purge.
  public static let manage = Rights(rawValue: 4)
  /// Delete messages from history.
  public static let delete = Rights(rawValue: 8)
  /// PubNub's create, which no operation here needs.
  public static let create = Rights(rawValue: 16)
  /// PubNub's get, which no operation here needs.
  public static let get = Rights(rawValue: 32)
  /// PubNub's update, which no operation here needs.
  public static let update = Rights(rawValue: 64)
  /// PubNub's join, which no operation here needs.
  public static let join = Rights(rawValue: 128)
  /// Take messages of a channel as jobs, and settle them.
  public static let lease = Rights(rawValue: 256)

  /// Every right.
  public static let all = Rights(rawValue: 0x1FF)

  private static let allNames = [
    "read", "write", "manage", "delete", "create", "get", "update", "join", "lease",
  ]

  /// The names of the rights.
  package var names: [String] {
    Self.allNames.enumerated().filter { rawValue & 1 << UInt16($0.offset) != 0 }.map(\.element)
  }

  /// The names of the rights, such as `read, write`.
  public var description: String { isEmpty ? "nothing" : names.joined(separator: ", ") }
}
