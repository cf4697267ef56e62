/// What the beginning of a channel's name says to Pusher's clients; its raw value is that beginning.
///
/// The first that a name begins with counts.
package enum PusherKind: String, Sendable, CaseIterable {
  /// Publishers encrypt; this server relays.
  case encrypted = "private-encrypted-"
  case `private` = "private-"
  /// Who subscribes is present, and sees who else is.
  case presence = "presence-"
  /// What servers publish to one user, whose id follows.
  case user = "#server-to-user-"
  case `public` = ""

  /// How names of events and channels begin that only the server uses.
  package static let reservedPrefixes = ["pusher:", "pusher_internal:"]

  /// Classifies a name, valid or not.
  package init(_ name: String) {
    self = Self.allCases.first { name.utf8.starts(with: $0.rawValue.utf8) } ?? .public
  }
}
