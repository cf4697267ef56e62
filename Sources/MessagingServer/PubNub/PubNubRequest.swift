internal import AccessControl

/// A request to PubNub's API: the call, and what all calls have in common.
struct PubNubRequest: Sendable {
  /// The most names in a list of channels or groups.
  static let maximumNameCount = 1000
  /// The most channels of a call with the members of its groups, and the most presence channels beside them.
  ///
  /// A channel that comes twice counts twice.
  static let maximumChannelCount = 3_000
  /// The longest user id, in bytes: PubNub's limit is 92 characters.
  static let maximumUserIDByteCount = 255

  let raw: RawRequest
  let family: PubNubFamily
  /// Empty for the time and for the parts that this server does not have: they belong to no application.
  let subscribeKey: String
  /// The parameter `uuid`.
  let userID: String?
  let call: PubNubCall

  /// The user ids that the call acts under: the parameter, and for a change of state the one in the path.
  var actingUserIDs: [String] {
    var ids = userID.map { [$0] } ?? []
    if case .setState(_, let userID, _) = call { ids.append(userID) }
    return ids.filter { !$0.isEmpty }
  }

  /// Whether the caller speaks PubNub's own forms of access: `auth` or a signature.
  ///
  /// Fields `Authorization`, which some proxies ask for, do not count then.
  let hasOwnCredentials: Bool

  /// Parses a request; nil if its path is none of PubNub's.
  ///
  /// - Parameter raw: with its body decompressed.
  /// - Throws: the answer to a request that is not valid.
  init?(_ raw: RawRequest) throws(PubNubRefusal) {
    var parser = PubNubPathParser(raw)
    guard let (family, call) = try parser.call() else { return nil }
    self.raw = raw
    self.family = family
    self.call = call
    subscribeKey = parser.subscribeKey
    hasOwnCredentials =
      raw.value("auth")?.isEmpty == false || raw.value("signature") != nil
    userID = try parser.text("uuid", family, maximumByteCount: Self.maximumUserIDByteCount)
  }
}

/// A refusal in the shape of its family.
struct PubNubRefusal: Error, Sendable, Equatable {
  let family: PubNubFamily
  let status: Int
  /// The text that SDKs compare with theirs.
  let message: String

  init(_ family: PubNubFamily, _ status: Int, _ message: String) {
    self.family = family
    self.status = status
    self.message = message
  }

  static func tooManyChannels(_ family: PubNubFamily) -> PubNubRefusal {
    PubNubRefusal(family, 400, "Too many channels")
  }

  static func invalidArguments(_ family: PubNubFamily) -> PubNubRefusal {
    PubNubRefusal(family, 400, "Invalid Arguments")
  }
}
