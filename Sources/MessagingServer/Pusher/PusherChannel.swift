internal import AccessControl

/// A channel as Pusher's clients name it; the beginning of the name says what it is.
struct PusherChannel: Sendable, Hashable {
  /// The longest name, in bytes.
  static let maximumByteCount = 164

  let name: ChannelName
  let kind: PusherKind
  /// Whether a new subscriber gets the newest message.
  let isCache: Bool

  /// Nil for a name that is not valid, and for the channel of a user, to which no one subscribes.
  ///
  /// A name has no colon, so that no signature of a channel is one of something else.
  init?(_ text: String) {
    guard (1...Self.maximumByteCount).contains(text.utf8.count),
      text.utf8.allSatisfy(\.isOfPusherName), let name = try? ChannelName(text)
    else { return nil }
    self.name = name
    kind = PusherKind(text)
    isCache = text.dropFirst(kind.rawValue.count).hasPrefix("cache-")
  }

  /// Whether servers can publish to a name.
  static func isPublishable(_ text: String) -> Bool {
    guard PusherKind(text) == .user else { return PusherChannel(text) != nil }
    return text.utf8.count <= maximumByteCount
      && PusherChannel(String(text.dropFirst(PusherKind.user.rawValue.count))) != nil
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
