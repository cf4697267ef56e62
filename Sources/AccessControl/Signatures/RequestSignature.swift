public import Foundation
public import VaultCrypto

/// The forms of a valid signature.
public enum SignatureForm: Sendable, Hashable, CaseIterable {
  /// Version 2: method, publish key, path, query and body.
  case version2
  /// Version 2 as JavaScript and Ruby 5 send it with a publish by POST: as a GET without a body.
  case version2WithoutBody
  /// Version 1: the keys, path and query.
  case version1
  /// Version 1 as Ruby 4 signs the calls of the access manager: the word `grant` or `audit` has the
  /// place of the path.
  case version1WithWord

  /// Whether the signature covers the method and the body.
  ///
  /// A form that does not is good only where no one can change the request on its way: over TLS or
  /// loopback.
  public var signsBody: Bool { self == .version2 }
}

/// The signature of a request under an application's secret key.
public enum RequestSignature: Sendable, Hashable {
  /// The request has no signature.
  case missing
  /// The signature is valid.
  case valid(SignatureForm)
  /// The timestamp is missing, or too far from the server's time.
  case invalidTimestamp
  /// The signature is not that of this request.
  case mismatch

  /// How far the timestamp of a request can be from the server's time, in both directions.
  public static let window = Duration.seconds(60)

  /// Verifies the signature of a request, in every form that an SDK sends.
  ///
  /// docs/reference/access.md lists the forms, and the deviations from them that are accepted.
  /// - Throws: an error of OpenSSL.
  public static func of(
    _ request: RawRequest, under application: Application, at now: Date
  ) throws(CryptoError) -> RequestSignature {
    let signatures = request.parameters.filter { $0.isNamed("signature") }
    guard let signature = signatures.first else { return .missing }
    guard isTimely(request, at: now) else { return .invalidTimestamp }
    guard signatures.count == 1, let query = CanonicalQuery(request) else { return .mismatch }
    let text = PercentEncoding.decode(signature.value)
    let isVersion2 = text.starts(with: "v2.".utf8)
    let code =
      isVersion2
      ? Base64.decode(text.dropFirst(3), alphabet: .url) : Base64.decode(text, alphabet: .both)
    guard let code, code.count == 32 else { return .mismatch }
    let templates =
      isVersion2 ? version2(request, application) : version1(request, application)
    for template in templates {
      for number in 0..<query.candidateCount {
        let message = template.before + query.candidate(number) + template.behind
        let expected = try application.secretKey.code(message)
        if unsafe isEqualInConstantTime(expected.span.bytes, code.span.bytes) {
          return .valid(template.form)
        }
      }
    }
    return .mismatch
  }

  /// What a form signs before and behind the query.
  private struct Template {
    let form: SignatureForm
    let before: [UInt8]
    var behind: [UInt8] = []
  }

  private static func isTimely(_ request: RawRequest, at now: Date) -> Bool {
    guard request.parameters.count(where: { $0.isNamed("timestamp") }) == 1,
      let text = request.value("timestamp"), (1...12).contains(text.count),
      text.allSatisfy(\.isDigit), let seconds = Double(String(decoding: text, as: UTF8.self))
    else { return false }
    let distance = abs(now.timeIntervalSince1970 - seconds)
    return distance <= Double(window.components.seconds)
  }

  private static func version2(_ request: RawRequest, _ application: Application) -> [Template] {
    func template(_ form: SignatureForm, _ method: String, _ body: [UInt8]) -> Template {
      Template(
        form: form, before: lines([method, application.publishKey], request.path),
        behind: [UInt8(ascii: "\n")] + body)
    }
    let whole = template(.version2, request.method, request.body)
    return isPublicationByPOST(request)
      ? [whole, template(.version2WithoutBody, "GET", [])] : [whole]
  }

  private static func version1(_ request: RawRequest, _ application: Application) -> [Template] {
    // The method is not in the text: a signed GET must not become a DELETE.
    guard request.method == "GET" || isPublicationByPOST(request) else { return [] }
    let keys = [application.subscribeKey, application.publishKey]
    var templates = [Template(form: .version1, before: lines(keys, request.path))]
    for word in ["grant", "audit"]
    where request.path.elementsEqual("/v1/auth/\(word)/sub-key/\(application.subscribeKey)".utf8) {
      templates.append(
        Template(form: .version1WithWord, before: lines(keys, Array(word.utf8)[...])))
    }
    return templates
  }

  /// Whether the request publishes its body, and its path has no message.
  ///
  /// The signature of a publication by GET covers a path with a message, so it is none of such a request.
  private static func isPublicationByPOST(_ request: RawRequest) -> Bool {
    request.method == "POST" && request.path.starts(with: "/publish/".utf8)
      && request.path.count { $0 == UInt8(ascii: "/") } == 6
  }

  private static func lines(_ texts: [String], _ last: ArraySlice<UInt8>) -> [UInt8] {
    texts.flatMap { Array($0.utf8) + [UInt8(ascii: "\n")] } + last + [UInt8(ascii: "\n")]
  }
}
