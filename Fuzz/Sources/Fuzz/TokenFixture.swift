@_spi(Testing) import AccessControl
import Foundation
import StrictJSON
import VaultCrypto

/// Tokens and patterns: changed, signed again after a change, and run on any name.
///
/// The first byte of the input selects one of these.
final class TokenFixture {
  private let signer: TokenSigner
  private let template: [UInt8]

  init() {
    do {
      let application = try Application(
        id: ApplicationID(1), name: "fuzz", publishKey: "pub", subscribeKey: "sub",
        secretKey: SecretKey(SecretBytes(copying: [1, 2, 3])))
      signer = try TokenSigner(application)
      let rights = TokenRights(
        channels: [TokenRights.Entry("a", .all)], groups: [TokenRights.Entry("g", .read)])
      let contents = try TokenContents(
        issue: Date(timeIntervalSince1970: 1_700_000_000), minutes: 15, resources: rights,
        patterns: TokenRights(channels: [TokenRights.Entry("^a-[0-9]+$", .read)]),
        meta: [JSONMember("m", ["x": [1, -1, 1000, true, .null, .number(0.5), "é"]])],
        authorizedUserID: "u")
      template = try TokenProbe.bytes(contents, signer: signer)
      require(isToken(template), "an unchanged token is refused")
    } catch {
      preconditionFailure("the fixture cannot be made: \(error)")
    }
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return }
    let rest = UnsafeBufferPointer(rebasing: input.dropFirst())
    switch mode & 3 {
    case 0: changed(rest)
    case 1:
      var bytes = template
      guard let edits = Edits(rest) else { return }
      edits.apply(to: &bytes)
      decode(bytes)
    case 2: decode(Array(rest))
    default: search(rest)
    }
  }

  /// A token that was changed is not accepted.
  private func changed(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    var bytes = template
    edits.apply(to: &bytes)
    require(isToken(bytes) == (bytes == template), "a changed token is accepted")
  }

  /// What is read has one encoding, whatever its signature is.
  private func decode(_ bytes: [UInt8]) {
    guard let again = TokenProbe.encodedAgain(bytes) else { return }
    require(again == bytes, "a token has two encodings")
  }

  /// Any pattern ends on any name, in a time that the bounds allow.
  private func search(_ input: UnsafeBufferPointer<UInt8>) {
    let parts = input.split(separator: 0, maxSplits: 1)
    guard let first = parts.first, first.count <= NamePattern.maximumByteCount,
      let pattern = try? NamePattern(String(decoding: first, as: UTF8.self))
    else { return }
    let name = parts.count > 1 ? String(decoding: parts[1].prefix(200), as: UTF8.self) : ""
    let isFound = pattern.matches(name)
    // A pattern that matches also matches as one of two alternatives.
    if let either = try? NamePattern("(?:\(pattern))|x{3}y{3}") {
      require(!isFound || either.matches(name), "an alternative does not match")
    }
  }

  private func isToken(_ bytes: [UInt8]) -> Bool {
    guard let reading = try? signer.read(TokenProbe.text(bytes).utf8) else { return false }
    if case .token = reading { return true }
    return false
  }
}
