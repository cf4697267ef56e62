internal import AccessControl

/// A channel as Pusher's clients name it; the beginning of the name says what it is.
struct PusherChannel: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case `public`
    case `private`
    /// Who subscribes is present, and sees who else is.
    case presence
    /// Publishers encrypt; this server relays.
    case encrypted
  }

  /// The longest name, in bytes.
  static let maximumByteCount = 164
  /// How the channel of a user begins, which servers publish to by the user's id.
  private static let userPrefix = "#server-to-user-"

  let name: ChannelName
  let kind: Kind
  /// Whether a new subscriber gets the newest message.
  let isCache: Bool

  /// Nil for a name that is not valid.
  ///
  /// A name has no colon, so that no signature of a channel is one of something else.
  init?(_ text: String) {
    guard (1...Self.maximumByteCount).contains(text.utf8.count),
      text.utf8.allSatisfy(\.isOfPusherName), let name = try? ChannelName(text)
    else { return nil }
    self.name = name
    let (kind, rest): (Kind, Substring) =
      if text.hasPrefix("private-encrypted-") {
        (.encrypted, text.dropFirst(18))
      } else if text.hasPrefix("private-") {
        (.private, text.dropFirst(8))
      } else if text.hasPrefix("presence-") {
        (.presence, text.dropFirst(9))
      } else {
        (.public, text[...])
      }
    self.kind = kind
    isCache = rest.hasPrefix("cache-")
  }

  /// Whether servers can publish to a name.
  static func isPublishable(_ text: String) -> Bool {
    if PusherChannel(text) != nil { return true }
    guard text.hasPrefix(userPrefix), text.utf8.count <= maximumByteCount else { return false }
    return PusherChannel(String(text.dropFirst(userPrefix.count))) != nil
  }

  /// Whether client events can be sent here.
  var takesClientEvents: Bool { kind == .private || kind == .presence }
}

extension UInt8 {
  /// Whether a name can have this character: `A-Z`, `a-z`, `0-9` or one of `_-=@,.;`.
  fileprivate var isOfPusherName: Bool {
    switch self {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "_-=@,.;".utf8.contains(self)
    }
  }
}
