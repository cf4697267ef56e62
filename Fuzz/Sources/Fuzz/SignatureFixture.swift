@_spi(Testing) import AccessControl
import Foundation
import VaultCrypto

/// Signed requests: changed, and any target at all.
final class SignatureFixture {
  private let application: Application
  private let template: [UInt8]
  private let now = Date(timeIntervalSince1970: 1_700_000_000)

  init() {
    do {
      application = try Application(
        id: ApplicationID(1), name: "fuzz", publishKey: "pub", subscribeKey: "sub",
        secretKey: SecretKey(SecretBytes(copying: [1, 2, 3])))
      let path = "/v2/auth/grant/sub-key/sub"
      let query = "auth=k%201&channel=a,b&r=1&timestamp=1700000000&ttl=5"
      let signed = "GET\npub\n\(path)\nauth=k%201&channel=a%2Cb&r=1&timestamp=1700000000&ttl=5\n"
      let message = Array(signed.utf8)
      let key = SecretBytes(copying: [1, 2, 3])
      let code = try HMAC.sha256(key: key, message: message.span.bytes)
      template = Array("\(path)?\(query)&signature=v2.\(TokenProbe.text(code))".utf8)
      require(signature(template) == .valid(.version2), "the unchanged request is refused")
    } catch {
      preconditionFailure("the fixture cannot be made: \(error)")
    }
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return }
    let rest = UnsafeBufferPointer(rebasing: input.dropFirst())
    switch mode & 3 {
    case 0:
      guard let edits = Edits(rest) else { return }
      var target = template
      edits.apply(to: &target)
      if case .valid = signature(target) { same(target) }
      parse(target)
    case 1:
      if case .valid = signature(Array(rest)) { require(false, "a forged request is accepted") }
    case 2: parse(Array("/v2/auth/grant/sub-key/sub?".utf8) + rest)
    default: body(Array(rest))
    }
  }

  /// A request that is accepted says what was signed, in any encoding.
  private func same(_ target: [UInt8]) {
    let found = try? GrantQuery(RawRequest(method: "GET", target: target))
    let signed = try? GrantQuery(RawRequest(method: "GET", target: template))
    require(found == signed, "an accepted request says something else")
  }

  /// A query that is read makes a bounded number of grants, whose answer is JSON.
  private func parse(_ target: [UInt8]) {
    let request = RawRequest(method: "GET", target: target)
    _ = AccessManagerCall.of(request)
    guard let query = try? GrantQuery(request) else { return }
    let hasher = AuthKeyHasher(key: SecretBytes(copying: [4]))
    let grants = try? query.grants(of: application.id, hashedBy: hasher, start: now)
    require((1...1000).contains(grants?.count ?? 0), "a query makes \(grants?.count ?? 0) grants")
    let text = query.reply(subscribeKey: "sub").text
    require((try? JSONSerialization.jsonObject(with: Data(text.utf8))) != nil, "no JSON: \(text)")
  }

  /// A body that is read makes a token, or is too large for one.
  private func body(_ bytes: [UInt8]) {
    guard let request = try? GrantTokenRequest(body: bytes) else { return }
    require(
      (try? JSONSerialization.jsonObject(with: Data(bytes))) != nil, "Foundation refuses a body")
    guard let signer = try? TokenSigner(application),
      let contents = try? request.contents(issue: now),
      let text = try? signer.issue(contents)
    else { return }
    guard case .token(let token)? = try? signer.read(text.utf8), token.contents == contents else {
      return require(false, "a token is not what was asked for")
    }
  }

  private func signature(_ target: [UInt8]) -> RequestSignature? {
    try? RequestSignature.of(
      RawRequest(method: "GET", target: target), under: application, at: now)
  }
}
