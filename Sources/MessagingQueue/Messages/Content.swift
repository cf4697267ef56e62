public import Foundation

/// The bytes of a payload, made of a text, of a value as JSON, or of other bytes.
///
/// A string literal is a text.
public struct Content: Sendable, Hashable, ExpressibleByStringInterpolation {
  /// The bytes that are published.
  public let bytes: [UInt8]

  private init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// Takes a literal as a text.
  public init(stringLiteral text: String) {
    self = .text(text)
  }

  /// A text in UTF-8.
  public static func text(_ text: some StringProtocol) -> Content {
    Content(bytes: Array(text.utf8))
  }

  /// `Data`, or any other bytes.
  public static func bytes(_ bytes: some Sequence<UInt8>) -> Content {
    Content(bytes: Array(bytes))
  }

  /// A value as JSON.
  ///
  /// - Parameter encoder: default: a `JSONEncoder` with its own defaults.
  /// - Throws: `invalidPayload` if the value cannot be encoded; the error contains nothing of it.
  public static func json(
    _ value: some Encodable, encoder: JSONEncoder = JSONEncoder()
  ) throws(EngineError) -> Content {
    do {
      return Content(bytes: Array(try encoder.encode(value)))
    } catch {
      throw EngineError(
        .invalidPayload, "a value of type \(type(of: value)) cannot be encoded as JSON",
        hint: "look at its encode(to:) and at the encoder")
    }
  }
}

/// What carries the payload of a message: the message itself, a delivery, an entry of the log or a
/// dead letter.
public protocol PayloadCarrier {
  /// The bytes of the payload.
  var payload: [UInt8] { get }
}

extension PayloadCarrier {
  /// The payload as a text; nil if it is not valid UTF-8.
  public var string: String? { String(validating: payload, as: UTF8.self) }

  /// The payload as a value that was published as JSON.
  ///
  /// - Parameter decoder: default: a `JSONDecoder` with its own defaults.
  /// - Throws: `invalidPayload` if it is not such a value; the error contains nothing of the payload.
  public func decode<Value: Decodable>(
    _ type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder()
  ) throws(EngineError) -> Value {
    do {
      return try decoder.decode(type, from: Data(payload))
    } catch {
      // A DecodingError can quote the payload.
      throw EngineError(
        .invalidPayload, "the payload is not the JSON of a \(type)",
        hint: "look at what its publisher encodes, or reject the message")
    }
  }
}

extension Message: PayloadCarrier {}
extension Delivery: PayloadCarrier {}
extension LogMessage: PayloadCarrier {}
extension DeadLetter: PayloadCarrier {}
