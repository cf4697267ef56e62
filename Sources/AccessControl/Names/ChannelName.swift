/// The name of a channel of an application: 1 to 200 bytes of UTF-8 without `/` and control
/// characters.
///
/// The engine's channel is `application/channel`. A grant, a subscription and a token can also name
/// a pattern, `a.*`, or the presence channel of a name, `a-pnpres`.
public struct ChannelName: Sendable, Hashable, CustomStringConvertible {
  /// The largest name, in bytes.
  public static let maximumByteCount = 200

  /// What PubNub adds to a name for the presence events of it.
  public static let presenceSuffix = "-pnpres"

  private let name: Name

  /// The name as it was given.
  public var text: String { name.text }

  /// Checks a name.
  ///
  /// - Throws: `invalidName`.
  public init(_ text: String) throws(AccessError) {
    if let fault = Name.fault(in: text, maximumByteCount: Self.maximumByteCount) {
      throw AccessError(
        .invalidName, "this channel name \(fault)",
        hint: "use 1 to \(Self.maximumByteCount) bytes without '/' and control characters")
    }
    guard !text.utf8.contains(UInt8(ascii: "/")) else {
      throw AccessError(
        .invalidName, "this channel name has a '/'", hint: "use another separator, such as '.'")
    }
    name = Name(unchecked: text)
  }

  private init(unchecked text: String) { name = Name(unchecked: text) }

  /// Whether this is the presence channel of another name.
  public var isPresence: Bool { text.utf8.hasSuffix(Self.presenceSuffix.utf8) }

  /// Whether this is a pattern, `a.*`, or the presence channel of one.
  public var isPattern: Bool { baseBytes.hasSuffix(".*".utf8) }

  /// Whether only the server sends messages here: presence channels, and the names that Pusher and
  /// this server reserve.
  public var isReserved: Bool {
    isPresence || Self.reservedPrefixes.contains { text.utf8.starts(with: $0.utf8) }
  }

  /// Whether Pusher's clients expect that its readers and publishers have an authority of their own:
  /// `private-`, `presence-` and `#server-to-user-`.
  ///
  /// Rights that everyone has do not reach such a channel, not even in an open application.
  public var needsAuthority: Bool { PusherKind(text) != .public }

  /// The pattern that covers this name: `a.*` for `a.b` and `a.b.c`, and `a.*-pnpres` for
  /// `a.b-pnpres`; nil for a name without a first part.
  ///
  /// PubNub has one level of patterns in grants. A grant on `a.b.*` covers the subscription to
  /// `a.b.*`, and no other name.
  public var coveringPattern: ChannelName? {
    let base = baseBytes
    guard let dot = base.firstIndex(of: UInt8(ascii: ".")), dot > base.startIndex else {
      return nil
    }
    let suffix = isPresence ? Self.presenceSuffix : ""
    return ChannelName(unchecked: "\(text[..<dot]).*\(suffix)")
  }

  /// The channel of this name's presence events; nil if that name would be too long, or this is one already.
  package var presenceChannel: ChannelName? {
    isPresence ? nil : try? ChannelName(text + Self.presenceSuffix)
  }

  /// The name.
  public var description: String { text }

  private static let reservedPrefixes = PusherKind.reservedPrefixes + ["datavault:"]

  /// The name without the suffix of its presence channel.
  private var baseBytes: Substring.UTF8View {
    isPresence
      ? text.utf8.dropLast(Self.presenceSuffix.utf8.count) : text.utf8[...]
  }
}

/// The name of a channel group, under the rule of channels; `:` is all groups.
public struct GroupName: Sendable, Hashable, CustomStringConvertible {
  /// All groups, but not their presence channels: those are `:-pnpres`.
  public static let all = GroupName(unchecked: ":")

  /// The presence channels of all groups.
  public static let allPresence = GroupName(unchecked: ":" + ChannelName.presenceSuffix)

  private let name: Name

  /// The name as it was given.
  public var text: String { name.text }

  /// Checks a name.
  ///
  /// - Throws: `invalidName`.
  public init(_ text: String) throws(AccessError) {
    if let fault = Name.fault(in: text, maximumByteCount: ChannelName.maximumByteCount) {
      throw AccessError(
        .invalidName, "this group name \(fault)",
        hint: "use 1 to \(ChannelName.maximumByteCount) bytes without control characters")
    }
    name = Name(unchecked: text)
  }

  private init(unchecked text: String) { name = Name(unchecked: text) }

  /// Whether this is the presence channel of a group.
  public var isPresence: Bool { text.utf8.hasSuffix(ChannelName.presenceSuffix.utf8) }

  /// The group of which this is the presence channel; nil if it is none.
  package var base: GroupName? {
    isPresence
      ? try? GroupName(String(text.dropLast(ChannelName.presenceSuffix.count))) : nil
  }

  /// The name of all groups that covers this one.
  var covering: GroupName { isPresence ? .allPresence : .all }

  /// The name.
  public var description: String { text }
}

extension BidirectionalCollection<UInt8> {
  fileprivate func hasSuffix(_ suffix: String.UTF8View) -> Bool {
    self.suffix(suffix.count).elementsEqual(suffix)
  }
}
