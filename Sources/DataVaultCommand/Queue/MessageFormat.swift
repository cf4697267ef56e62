internal import ArgumentParser
internal import Foundation
internal import MessagingQueue

/// How messages lie in a stream: a line each, or a JSON object a line.
enum MessageFormat {
  case lines
  case ndjson

  /// The most bytes that a line with a message can have: JSON writes a byte with at most six, and
  /// beside payload and headers there are names of at most 255 bytes.
  func maximumLineByteCount(_ configuration: EngineConfiguration) -> Int {
    switch self {
    case .lines: configuration.maximumPayloadByteCount
    case .ndjson:
      6 * (configuration.maximumPayloadByteCount + configuration.maximumHeaderByteCount) + 16_384
    }
  }

  /// The message in a line, which has what it does not say from `prototype`; nil for a line that holds
  /// none.
  func message(
    of line: [UInt8], like prototype: Message, number: Int
  ) throws(CommandFailure) -> Message? {
    switch self {
    case .lines:
      var message = prototype
      message.payload = line
      return message
    case .ndjson:
      return try NDJSONMessage.message(of: line, like: prototype, number: number)
    }
  }

  /// The line for a delivery, newline included; nil if the format cannot carry its payload.
  func line(for delivery: Delivery, withToken: Bool) -> [UInt8]? {
    switch self {
    case .lines: delivery.payload.contains(0x0A) ? nil : delivery.payload + [0x0A]
    case .ndjson: NDJSONMessage(delivery, withToken: withToken).line
    }
  }

  /// The line for a message of the log, likewise.
  func line(for message: LogMessage) -> [UInt8]? {
    switch self {
    case .lines: message.payload.contains(0x0A) ? nil : message.payload + [0x0A]
    case .ndjson: NDJSONMessage(message).line
    }
  }
}
