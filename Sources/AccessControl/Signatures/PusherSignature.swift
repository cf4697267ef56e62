public import Foundation
public import VaultCrypto

/// The signatures of Pusher under an application's secret key: of a channel for one connection, and of a request.
///
/// The key is the application's subscribe key, the secret its secret key.
public enum PusherSignature: Sendable, Hashable {
  /// The signature of a request is valid.
  case valid
  /// The timestamp is missing, or too far from the server's time.
  case invalidTimestamp
  /// `body_md5` is missing beside a body, or is not that of the body.
  case otherBody
  /// The signature is missing, or not that of this request.
  case mismatch

  /// How far the timestamp of a request can be from the server's time, in both directions.
  public static let window = Duration.seconds(600)

  /// More parameters are not verified, so that a forged request costs little.
  static let maximumParameterCount = 64

  // MARK: - Channels

  /// Whether `auth` is `KEY:CODE` for a channel and a connection, as the application's own endpoint signs it.
  ///
  /// The code covers `channelData` as the bytes that were sent: servers write its JSON in different ways.
  ///
  /// - Parameter channelData: nil if the client sent none.
  /// - Throws: an error of OpenSSL.
  public static func authorizes(
    _ auth: String, socketID: String, channel: ChannelName, channelData: String?,
    under application: Application
  ) throws(CryptoError) -> Bool {
    var message = Array("\(socketID):\(channel.text)".utf8)
    if let channelData { message += [UInt8(ascii: ":")] + channelData.utf8 }
    guard let colon = auth.utf8.lastIndex(of: UInt8(ascii: ":")),
      auth.utf8[..<colon].elementsEqual(application.subscribeKey.utf8)
    else { return false }
    return try isCode(Array(auth.utf8[colon...].dropFirst()), of: message, under: application)
  }

  // MARK: - Requests

  /// Verifies the signature of a request to the HTTP API.
  ///
  /// The signed text has the method, the path and the parameters, sorted by their names in lower case, each value
  /// percent-decoded. It covers the body by `body_md5`, without which no body is accepted.
  ///
  /// - Parameter body: as it was sent.
  /// - Throws: an error of OpenSSL.
  public static func of(
    _ request: RawRequest, under application: Application, at now: Date
  ) throws(CryptoError) -> PusherSignature {
    guard request.parameters.count <= maximumParameterCount,
      request.only("auth_version") == Array("1.0".utf8),
      request.only("auth_key") == Array(application.subscribeKey.utf8),
      let code = request.only("auth_signature")
    else { return .mismatch }
    guard isTimely(request, at: now) else { return .invalidTimestamp }
    for path in paths(request) {
      for query in queries(request) {
        let message = Array("\(request.method)\n".utf8) + path + [UInt8(ascii: "\n")] + query
        guard try isCode(code, of: message, under: application) else { continue }
        return try namesBody(request) ? .valid : .otherBody
      }
    }
    return .mismatch
  }

  /// As received; some clients sign another spelling of the characters that a URL can have encoded or not.
  private static func paths(_ request: RawRequest) -> [[UInt8]] {
    let decoded = PercentEncoding.decode(request.path)
    return decoded == Array(request.path) ? [decoded] : [Array(request.path), decoded]
  }

  /// With `+` as it is, then as a space: forms write one, and Python's SDK the other.
  private static func queries(_ request: RawRequest) -> [[UInt8]] {
    let signed = request.parameters.filter { !$0.isNamed("auth_signature") }
    let usual = query(signed) { PercentEncoding.decode($0) }
    let form = query(signed) { value in
      PercentEncoding.decode(value.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
    }
    return usual == form ? [usual] : [usual, form]
  }

  private static func query(
    _ parameters: [RawRequest.Parameter], _ decode: (ArraySlice<UInt8>) -> [UInt8]
  ) -> [UInt8] {
    parameters.map { (name: $0.name.map(\.lowercased), value: decode($0.value)) }
      .sorted { $0.name.lexicographicallyPrecedes($1.name) }
      .map { $0.name + [UInt8(ascii: "=")] + $0.value }
      .joined(separator: [UInt8(ascii: "&")]).map(\.self)
  }

  private static func isTimely(_ request: RawRequest, at now: Date) -> Bool {
    guard let text = request.only("auth_timestamp"), (1...12).contains(text.count),
      text.allSatisfy(\.isDigit), let seconds = Double(String(decoding: text, as: UTF8.self))
    else { return false }
    return abs(now.timeIntervalSince1970 - seconds) <= Double(window.components.seconds)
  }

  /// Whether `body_md5` is that of the body; without a body it can be missing.
  private static func namesBody(_ request: RawRequest) throws(CryptoError) -> Bool {
    guard request.parameters.contains(where: { $0.isNamed("body_md5") }) else {
      return request.body.isEmpty
    }
    let digest = unsafe try LegacyDigest.md5(request.body.span.bytes)
    return request.only("body_md5") == Array(digest.hexadecimal.utf8)
  }

  // MARK: - Codes

  /// The signature of a webhook's body, which its receiver verifies: `X-Pusher-Signature`.
  ///
  /// - Throws: an error of OpenSSL.
  package static func ofWebhook(
    _ body: [UInt8], under application: Application
  ) throws(CryptoError) -> String {
    try application.secretKey.code(body).hexadecimal
  }

  private static func isCode(
    _ text: [UInt8], of message: [UInt8], under application: Application
  ) throws(CryptoError) -> Bool {
    let expected = Array(try application.secretKey.code(message).hexadecimal.utf8)
    return unsafe isEqualInConstantTime(expected.span.bytes, text.span.bytes)
  }
}

extension UInt8 {
  /// An ASCII letter in lower case; another byte as it is.
  fileprivate var lowercased: UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self + 32 : self
  }
}
