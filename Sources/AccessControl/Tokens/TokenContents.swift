public import Foundation
public import StrictJSON

/// The rights of a token on the names, or on the patterns, of each kind, in the order of the token.
public struct TokenRights: Sendable, Hashable {
  /// A name or a pattern, and the rights on it.
  public struct Entry: Sendable, Hashable {
    /// The name or the pattern.
    public let name: String
    /// The rights.
    public let rights: Rights

    /// Makes an entry.
    public init(_ name: String, _ rights: Rights) {
      self.name = name
      self.rights = rights
    }
  }

  /// Channels.
  public var channels: [Entry]
  /// Channel groups.
  public var groups: [Entry]
  /// Spaces, which PubNub keeps beside channels; no operation here reads them.
  public var spaces: [Entry]
  /// Users, which PubNub keeps beside uuids; no operation here reads them.
  public var users: [Entry]
  /// The ids of users whose metadata the token reaches; no operation here reads them.
  public var uuids: [Entry]

  /// Makes rights.
  public init(
    channels: [Entry] = [], groups: [Entry] = [], spaces: [Entry] = [], users: [Entry] = [],
    uuids: [Entry] = []
  ) {
    self.channels = channels
    self.groups = groups
    self.spaces = spaces
    self.users = users
    self.uuids = uuids
  }

  /// All kinds in the order of a token.
  var kinds: [[Entry]] { [channels, groups, spaces, users, uuids] }

  var isEmpty: Bool { kinds.allSatisfy(\.isEmpty) }
}

/// What a token says.
public struct TokenContents: Sendable, Hashable {
  /// The longest lifetime in minutes: 30 days.
  public static let maximumMinutes = 43_200

  /// When the token was issued, in whole seconds since 1970.
  public let issueSeconds: Int64
  /// The lifetime in minutes, from 1.
  public let minutes: Int
  /// Rights on names.
  public let resources: TokenRights
  /// Rights on all names that a pattern matches.
  public let patterns: TokenRights
  /// What the application noted in the token; readable by its bearer.
  public let meta: [JSONMember]
  /// The only user id with which the token is valid; nil for any.
  public let authorizedUserID: String?

  /// Makes contents.
  ///
  /// - Parameters:
  ///   - issue: the current time, which is cut to whole seconds.
  ///   - minutes: 1 to ``maximumMinutes``.
  /// - Throws: `invalidToken` for a lifetime out of range.
  public init(
    issue: Date, minutes: Int, resources: TokenRights, patterns: TokenRights = TokenRights(),
    meta: [JSONMember] = [], authorizedUserID: String? = nil
  ) throws(AccessError) {
    let seconds = issue.timeIntervalSince1970
    guard (1...Self.maximumMinutes).contains(minutes), seconds >= 0, seconds < 4_294_967_296 else {
      throw AccessError(
        .invalidToken, "a token for \(minutes) minutes is not possible",
        hint: "use 1 to \(Self.maximumMinutes)")
    }
    self.init(
      issueSeconds: Int64(seconds), minutes: minutes, resources: resources, patterns: patterns,
      meta: meta, authorizedUserID: authorizedUserID)
  }

  private init(
    issueSeconds: Int64, minutes: Int, resources: TokenRights, patterns: TokenRights,
    meta: [JSONMember], authorizedUserID: String?
  ) {
    self.issueSeconds = issueSeconds
    self.minutes = minutes
    self.resources = resources
    self.patterns = patterns
    self.meta = meta
    self.authorizedUserID = authorizedUserID
  }

  /// The moment from which the token allows nothing.
  public var end: Date {
    Date(timeIntervalSince1970: Double(issueSeconds) + Double(minutes) * 60)
  }

  // MARK: - CBOR

  private static let memberCount: UInt64 = 6

  /// The CBOR map without the signature: what the signature covers.
  var unsigned: [UInt8] { encoded(signature: nil) }

  /// The CBOR map, in the byte order of PubNub's tokens, with the signature as its last member.
  func encoded(signature: [UInt8]?) -> [UInt8] {
    var writer = CBORWriter()
    let optional: UInt64 = (authorizedUserID == nil ? 0 : 1) + (signature == nil ? 0 : 1)
    writer.head(.map, Self.memberCount + optional)
    writer.key("v")
    writer.head(.unsigned, 2)
    writer.key("t")
    writer.head(.unsigned, UInt64(issueSeconds))
    writer.key("ttl")
    writer.head(.unsigned, UInt64(minutes))
    writer.key("res")
    writer.rights(resources)
    writer.key("pat")
    writer.rights(patterns)
    writer.key("meta")
    writer.map(meta)
    if let authorizedUserID {
      writer.key("uuid")
      writer.text(authorizedUserID)
    }
    if let signature {
      writer.key("sig")
      writer.byteString(signature)
    }
    return writer.bytes
  }

  /// Reads a signed token, and nothing but the one encoding of its contents.
  static func decode(
    _ bytes: [UInt8]
  ) throws(CBORReader.Fault) -> (contents: TokenContents, signature: [UInt8]) {
    var reader = CBORReader(bytes)
    let count = try reader.mapCount()
    guard count == 7 || count == 8 else { throw CBORReader.Fault() }
    try reader.expect(key: "v")
    guard try reader.head(.unsigned) == 2 else { throw CBORReader.Fault() }
    try reader.expect(key: "t")
    guard let seconds = UInt32(exactly: try reader.head(.unsigned)) else {
      throw CBORReader.Fault()
    }
    try reader.expect(key: "ttl")
    guard let minutes = Int(exactly: try reader.head(.unsigned)),
      (1...maximumMinutes).contains(minutes)
    else { throw CBORReader.Fault() }
    try reader.expect(key: "res")
    let resources = try reader.rights()
    try reader.expect(key: "pat")
    let patterns = try reader.rights()
    try reader.expect(key: "meta")
    let meta = try reader.map()
    var userID: String?
    if count == 8 {
      try reader.expect(key: "uuid")
      userID = try reader.text()
    }
    try reader.expect(key: "sig")
    let signature = try reader.byteString()
    guard signature.count == 32, reader.isAtEnd else { throw CBORReader.Fault() }
    let contents = TokenContents(
      issueSeconds: Int64(seconds), minutes: minutes, resources: resources, patterns: patterns,
      meta: meta, authorizedUserID: userID)
    return (contents, signature)
  }
}

extension CBORWriter {
  fileprivate mutating func rights(_ rights: TokenRights) {
    head(.map, 5)
    for (key, entries) in zip(["chan", "grp", "spc", "usr", "uuid"], rights.kinds) {
      byteString(Array(key.utf8))
      head(.map, UInt64(entries.count))
      for entry in entries {
        text(entry.name)
        head(.unsigned, UInt64(entry.rights.rawValue))
      }
    }
  }
}

extension CBORReader {
  fileprivate mutating func rights() throws(Fault) -> TokenRights {
    guard try mapCount() == 5 else { throw Fault() }
    try expect(key: "chan")
    let channels = try entries()
    try expect(key: "grp")
    let groups = try entries()
    try expect(key: "spc")
    let spaces = try entries()
    try expect(key: "usr")
    let users = try entries()
    try expect(key: "uuid")
    let uuids = try entries()
    return TokenRights(
      channels: channels, groups: groups, spaces: spaces, users: users, uuids: uuids)
  }

  private mutating func entries() throws(Fault) -> [TokenRights.Entry] {
    var entries: [TokenRights.Entry] = []
    var names: Set<Name> = []
    for _ in 0..<(try mapCount()) {
      let name = try text()
      guard names.insert(Name(unchecked: name)).inserted,
        let bits = UInt16(exactly: try head(.unsigned)), bits <= Rights.all.rawValue
      else { throw Fault() }
      entries.append(TokenRights.Entry(name, Rights(rawValue: bits)))
    }
    return entries
  }
}
