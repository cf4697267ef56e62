internal import Foundation
internal import Glibc
internal import VaultCrypto

/// The signature of a request under the secret key, version 2 (PubNub's "Signature v2").
enum PubNubSignature {
  /// Adds `timestamp` and `signature`, and sorts the parameters as they are signed.
  ///
  /// The signed text is method, publish key, path, query and body, with line feeds between them.
  static func sign(
    _ target: inout RequestTarget, method: String, body: [UInt8], publishKey: String,
    secretKey: SharedSecret, at now: Date = Date()
  ) throws(MessagingClientError) {
    target.add("timestamp", String(Int64(now.timeIntervalSince1970)))
    target.sort()
    let text =
      SecretText("\(method)\n\(publishKey)\n") + target.wholePath + "\n" + target.query + "\n"
      + SecretText(String(decoding: body, as: UTF8.self))
    do throws(CryptoError) {
      let message = text.secret()
      let code = try secretKey.withSecret { (key) throws(CryptoError) in
        try message.withBytes { (bytes) throws(CryptoError) in
          try HMAC.sha256(key: key, message: bytes)
        }
      }
      let digits = Data(code).base64EncodedString().replacing("+", with: "-").replacing(
        "/", with: "_"
      )
      .prefix { $0 != "=" }
      target.add("signature", "v2.\(digits)")
    } catch {
      throw MessagingClientError(.invalidArgument, "the request cannot be signed: \(error)")
    }
  }
}
