/// A call over the bus that did not succeed.
struct BusFailure: Error, Sendable, CustomStringConvertible {
  /// What became of the call.
  enum Kind: Sendable {
    /// It never reached a service: no bus, no service.
    case unreachable
    /// The service or the bus went away, or was silent: whether the call was carried out is not
    /// known.
    case unanswered
    /// The service refused it.
    case refused
    /// The service refused it, because what it is about is locked.
    case locked
    /// The service does not know the object.
    case unknownObject
    /// It answered with something else than its specification says.
    case misunderstood
  }

  let kind: Kind
  /// The bus's or the service's own words.
  let description: String

  init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description.quotable
  }

  static var misunderstood: BusFailure {
    BusFailure(.misunderstood, "the secret service answered with something else than was asked for")
  }

  /// An error that came as a message.
  ///
  /// - Parameter name: such as `org.freedesktop.DBus.Error.NoReply`.
  init(named name: String, _ description: String) {
    let kind: Kind =
      switch name {
      case "org.freedesktop.Secret.Error.IsLocked": .locked
      case "org.freedesktop.Secret.Error.NoSuchObject",
        "org.freedesktop.DBus.Error.UnknownObject", "org.freedesktop.DBus.Error.UnknownMethod":
        .unknownObject
      case "org.freedesktop.DBus.Error.ServiceUnknown",
        "org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.AccessDenied":
        .unreachable
      case let name where name.hasPrefix("org.freedesktop.DBus.Error.Spawn."): .unreachable
      case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Timeout",
        "org.freedesktop.DBus.Error.TimedOut", "org.freedesktop.DBus.Error.Disconnected":
        .unanswered
      default: .refused
      }
    self.init(kind, description)
  }
}

extension String {
  /// What somebody else has written, for a message: one line, of a length that a person reads.
  fileprivate var quotable: String {
    let scalars = unicodeScalars.prefix(500).map { scalar in
      scalar.properties.generalCategory == .control ? "\u{FFFD}" : scalar
    }
    return String(String.UnicodeScalarView(scalars))
  }
}

/// How long a peer that is slow, or that wants to be, is waited for.
package struct BusTimeouts: Sendable {
  /// For the answer to one call; starting the service is part of the first.
  let answer: Duration
  /// For all answers over one connection together: a service that answers each call just in time would
  /// otherwise keep its caller for as many calls as it has items.
  let conversation: Duration

  package init(answer: Duration, conversation: Duration) {
    self.answer = answer
    self.conversation = conversation
  }

  /// 25 seconds a call, as D-Bus has it by default; a minute for all.
  package static let standard = BusTimeouts(answer: .seconds(25), conversation: .seconds(60))
}
