public import Foundation
internal import VaultCrypto

/// The SHA-256 of a token's bytes, by which tables name a revoked token without holding it.
public struct TokenDigest: Sendable, Hashable {
  /// The 32 bytes.
  public let bytes: [UInt8]

  /// Takes the bytes of a stored digest; nil unless there are 32.
  public init?(stored bytes: [UInt8]) {
    guard bytes.count == SHA256.byteCount else { return nil }
    self.bytes = bytes
  }
}

/// A token of version 3 whose signature was checked.
///
/// Only a ``TokenSigner`` makes one. Whether it has ended or was revoked is up to the decision. It is
/// shared by reference, so that a principal is small.
public final class Token: Sendable {
  /// The application whose secret key signed it.
  public let application: ApplicationID

  /// What names the token when it is revoked.
  public let digest: TokenDigest

  /// What the token says.
  public let contents: TokenContents

  private let channels: RightsByName
  private let groups: RightsByName

  init(
    _ contents: TokenContents, digest: TokenDigest, application: ApplicationID
  ) throws(AccessError) {
    self.application = application
    self.digest = digest
    self.contents = contents
    channels = try RightsByName(contents.resources.channels, contents.patterns.channels)
    groups = try RightsByName(contents.resources.groups, contents.patterns.groups)
    let stepCount = channels.stepCount + groups.stepCount
    guard stepCount <= NamePattern.maximumStepCount else {
      throw AccessError(
        .invalidPattern, "the patterns of a token are too large together",
        hint: "use fewer patterns, or smaller counts of repetition")
    }
  }

  /// The moment from which the token allows nothing.
  public var end: Date { contents.end }

  /// The rule that gives a right on a scope; nil if there is none.
  ///
  /// The rights of the name and of all patterns that match it add up.
  func rule(giving right: Rights, on scope: Scope) -> Decision.Reason? {
    switch scope {
    case .channel(let name), .consumer(_, let name): channels.rule(giving: right, on: name.text)
    case .group(let name): groups.rule(giving: right, on: name.text)
    case .application, .user: nil
    }
  }
}

/// The rights of a token on names of one kind.
private struct RightsByName: Sendable {
  private let names: [Name: Rights]
  private let patterns: [(pattern: NamePattern, rights: Rights)]

  init(
    _ resources: [TokenRights.Entry], _ patterns: [TokenRights.Entry]
  ) throws(AccessError) {
    names = Dictionary(
      resources.map { (Name(unchecked: $0.name), $0.rights) }, uniquingKeysWith: { $0.union($1) })
    var compiled: [(pattern: NamePattern, rights: Rights)] = []
    for entry in patterns { compiled.append((try NamePattern(entry.name), entry.rights)) }
    self.patterns = compiled
  }

  var stepCount: Int { patterns.reduce(0) { $0 + $1.pattern.steps.count } }

  func rule(giving right: Rights, on name: String) -> Decision.Reason? {
    if names[Name(unchecked: name)]?.isSuperset(of: right) == true { return .tokenResource }
    for (number, entry) in patterns.enumerated()
    where entry.rights.isSuperset(of: right) && entry.pattern.matches(name) {
      return .tokenPattern(number)
    }
    return nil
  }
}
