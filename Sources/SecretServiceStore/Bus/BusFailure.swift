/// The error of a failed call over the bus.
struct BusFailure: Error, Sendable, CustomStringConvertible {
  /// The outcome of the call.
  enum Kind: Sendable {
    /// The call did not reach a service: no bus, or no service.
    case unreachable
    /// The service or the bus went away or did not answer. Whether the call was carried out is
    /// unknown.
    case unanswered
    /// The service refused the call.
    case refused
    /// The service refused the call because the object is locked.
    case locked
    /// The service does not know the object.
    case unknownObject
    /// The answer does not match the specification.
    case misunderstood
  }

  let kind: Kind
  /// The words of the bus or of the service.
  let description: String

  init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description.quotable
  }

  static var misunderstood: BusFailure {
    BusFailure(.misunderstood, "the secret service returned an answer of an unexpected form")
  }

  /// Makes the failure for an error message of the bus.
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
  /// Foreign text in a form fit for an error message: one line of limited length.
  fileprivate var quotable: String {
    let scalars = unicodeScalars.prefix(500).map { scalar in
      scalar.properties.generalCategory == .control ? "\u{FFFD}" : scalar
    }
    return String(String.UnicodeScalarView(scalars))
  }
}
