internal import ArgumentParser
internal import Foundation
internal import MessagingQueue

/// How messages lie in a stream: a line each, or a JSON object a line.
enum MessageFormat {
  case lines
  case ndjson

  /// The most bytes that a line with a payload of `payloadByteCount` can have: JSON writes a byte
  /// with at most six.
  func maximumLineByteCount(payloadByteCount: Int) -> Int {
    switch self {
    case .lines: payloadByteCount
    case .ndjson: 6 * payloadByteCount + 4096
    }
  }

  /// The payload in a line; nil for a line that holds none.
  func payload(of line: [UInt8], number: Int) throws(CommandFailure) -> [UInt8]? {
    switch self {
    case .lines: line
    case .ndjson: try NDJSONMessage.payload(of: line, number: number)
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
