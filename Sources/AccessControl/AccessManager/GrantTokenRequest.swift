public import Foundation
public import StrictJSON

/// The body of `POST /v3/pam/{sub}/grant`, in the variants of all SDKs.
///
/// Members that are not known are ignored: SDKs add their own (`categories`, copies as `spaces` and
/// `users`).
public struct GrantTokenRequest: Sendable, Hashable {
  /// The largest body, in bytes.
  public static let maximumByteCount = 65_536

  /// The lifetime in minutes.
  public let minutes: Int
  /// Rights on names.
  public let resources: TokenRights
  /// Rights on patterns.
  public let patterns: TokenRights
  /// What the token carries for the application.
  public let meta: [JSONMember]
  /// The only user id with which the token is valid.
  public let authorizedUserID: String?

  /// Reads a body.
  ///
  /// - Throws: the answer to the call.
  public init(body: [UInt8]) throws(AccessReply) {
    guard body.count <= Self.maximumByteCount else {
      throw Self.fault("body", "At most \(Self.maximumByteCount) bytes.", at: "body")
    }
    let value: JSONValue
    do {
      value = try JSONReader.value(body, maximumDepth: CBORReader.maximumDepth)
    } catch {
      throw Self.fault("JSON", "The body \(error).", at: "body")
    }
    minutes = try Self.minutes(value.member("ttl"))
    guard let permissions = value.member("permissions"), case .object = permissions else {
      throw Self.fault("permissions", "An object is needed.", at: "permissions")
    }
    resources = try Self.rights(permissions, "resources")
    patterns = try Self.rights(permissions, "patterns")
    guard !resources.isEmpty || !patterns.isEmpty else {
      throw Self.fault(
        "permissions", "At least one resource or pattern is needed.", at: "permissions")
    }
    for kind in patterns.kinds { try Self.check(patterns: kind) }
    switch permissions.member("meta") {
    case .object(let members): meta = members
    case nil, .null: meta = []
    default: throw Self.fault("meta", "An object is needed.", at: "permissions.meta")
    }
    switch permissions.member("uuid") {
    case .string(let id) where (1...Name.maximumByteCount).contains(id.utf8.count):
      authorizedUserID = id
    case nil, .null: authorizedUserID = nil
    default:
      throw Self.fault(
        "uuid", "A string of 1 to \(Name.maximumByteCount) bytes is needed.",
        at: "permissions.uuid")
    }
  }

  /// The contents of a token that answers this request.
  ///
  /// - Throws: `invalidToken` for a time out of range.
  public func contents(issue: Date) throws(AccessError) -> TokenContents {
    try TokenContents(
      issue: issue, minutes: minutes, resources: resources, patterns: patterns, meta: meta,
      authorizedUserID: authorizedUserID)
  }

  private static func fault(_ part: String, _ detail: String, at location: String) -> AccessReply {
    .invalid(part, of: "grant", detail, at: location, in: "body")
  }

  /// Old versions of the Python SDK sent a string.
  private static func minutes(_ value: JSONValue?) throws(AccessReply) -> Int {
    let minutes: Int? =
      switch value {
      case .integer(let number): Int(exactly: number)
      case .string(let text): Int(text)
      default: nil
      }
    guard let minutes, (1...TokenContents.maximumMinutes).contains(minutes) else {
      throw fault(
        "ttl", "Range should be 1 to \(TokenContents.maximumMinutes) minute(s).", at: "ttl")
    }
    return minutes
  }

  private static func rights(
    _ permissions: JSONValue, _ part: String
  ) throws(AccessReply) -> TokenRights {
    guard let value = permissions.member(part), value != .null else { return TokenRights() }
    guard case .object = value else {
      throw fault(part, "An object is needed.", at: "permissions.\(part)")
    }
    func entries(_ kind: String) throws(AccessReply) -> [TokenRights.Entry] {
      try Self.entries(value.member(kind), kind, at: "permissions.\(part).\(kind)", of: part)
    }
    return TokenRights(
      channels: try entries("channels"), groups: try entries("groups"),
      spaces: try entries("spaces"), users: try entries("users"), uuids: try entries("uuids"))
  }

  private static func entries(
    _ value: JSONValue?, _ kind: String, at location: String, of part: String
  ) throws(AccessReply) -> [TokenRights.Entry] {
    guard let value, value != .null else { return [] }
    guard case .object(let members) = value else {
      throw fault(part, "An object is needed.", at: location)
    }
    var entries: [TokenRights.Entry] = []
    for member in members {
      guard isValid(member.name, kind, of: part) else {
        throw fault(part, "A name is not valid.", at: location)
      }
      guard case .integer(let bits) = member.value, (0...Int64(Rights.all.rawValue)).contains(bits)
      else {
        throw fault(part, "Rights should be 0 to \(Rights.all.rawValue).", at: location)
      }
      entries.append(TokenRights.Entry(member.name, Rights(rawValue: UInt16(bits))))
    }
    return entries
  }

  private static func isValid(_ name: String, _ kind: String, of part: String) -> Bool {
    if part == "patterns" { return !name.isEmpty }
    return switch kind {
    case "channels", "spaces": (try? ChannelName(name)) != nil
    case "groups": (try? GroupName(name)) != nil
    default: (try? Name(name)) != nil
    }
  }

  private static func check(patterns: [TokenRights.Entry]) throws(AccessReply) {
    for entry in patterns {
      do {
        _ = try NamePattern(entry.name)
      } catch {
        throw fault("patterns", "\(error)", at: "permissions.patterns")
      }
    }
  }
}

/// The revocation of a token, `DELETE /v3/pam/{sub}/grant/{token}`.
public enum TokenRevocation {
  /// The token to revoke, from the last segment of the path after percent-decoding.
  ///
  /// - Throws: the answer to the call if the token is not one of the application's, or has ended.
  public static func token(
    _ text: [UInt8], readBy signer: TokenSigner, at now: Date
  ) throws(AccessReply) -> Token {
    guard case .token(let token)? = try? signer.read(text) else {
      throw .invalid("token", of: "revoke", "Token is not valid.", at: "token", in: "path")
    }
    guard now < token.end else {
      throw .invalid("token", of: "revoke", "Token is expired.", at: "token", in: "path")
    }
    return token
  }
}
