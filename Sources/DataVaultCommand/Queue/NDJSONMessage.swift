internal import Foundation
internal import MessagingQueue

/// A message as one line of JSON: `payload` if it is UTF-8, else `payloadBase64`.
struct NDJSONMessage {
  private let timetoken: Timetoken
  private let channel: Channel
  private let payload: [UInt8]
  private let headers: [String: String]
  private let orderingKey: String?
  private var attempt: Int?
  private var token: String?

  init(_ delivery: Delivery, withToken: Bool) {
    timetoken = delivery.timetoken
    channel = delivery.channel
    payload = delivery.payload
    headers = delivery.headers
    orderingKey = delivery.orderingKey
    attempt = delivery.attempt
    token = withToken ? delivery.token.description : nil
  }

  init(_ message: LogMessage) {
    timetoken = message.timetoken
    channel = message.channel
    payload = message.payload
    headers = message.headers
    orderingKey = message.orderingKey
  }

  /// The line, newline included.
  ///
  /// Timetokens are strings: they have more digits than JavaScript keeps.
  var line: [UInt8] {
    var line = #"{"timetoken":"\#(timetoken)","channel":"#
    line += Self.quoted(channel.name)
    if let attempt { line += #","attempt":\#(attempt)"# }
    if let token { line += #","token":"\#(token)""# }
    if let orderingKey { line += #","orderingKey":"# + Self.quoted(orderingKey) }
    if !headers.isEmpty {
      let members = headers.sorted { $0.key < $1.key }.map {
        Self.quoted($0.key) + ":" + Self.quoted($0.value)
      }
      line += #","headers":{"# + members.joined(separator: ",") + "}"
    }
    if let text = String(validating: payload, as: UTF8.self) {
      line += #","payload":"# + Self.quoted(text)
    } else {
      line += #","payloadBase64":""# + Data(payload).base64EncodedString() + #"""#
    }
    line += "}\n"
    return Array(line.utf8)
  }

  /// Reads `payload` or `payloadBase64`; an empty line holds no message.
  ///
  /// Other members are left alone, so that what `receive` wrote can be published again; the line as a
  /// whole is read strictly (``JSONLine``).
  static func payload(of line: [UInt8], number: Int) throws(CommandFailure) -> [UInt8]? {
    if JSONLine.isBlank(line) { return nil }
    let members: JSONLine
    do throws(JSONFault) {
      members = try JSONLine(line)
    } catch {
      throw failure(number, "\(error)")
    }
    switch (members["payload"], members["payloadBase64"]) {
    case (let value?, nil):
      guard let text = value.text else { throw failure(number, "has a payload that is no string") }
      return Array(text.utf8)
    case (nil, let value?):
      guard let payload = value.text.flatMap(Base64Text.decode) else {
        throw failure(number, "has a payloadBase64 that is not base64")
      }
      return payload
    default:
      throw failure(number, "needs exactly one of payload and payloadBase64")
    }
  }

  private static func failure(_ number: Int, _ fault: String) -> CommandFailure {
    CommandFailure(.badData, "line \(number) \(fault)")
  }

  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": quoted += "\\\""
      case "\\": quoted += "\\\\"
      case "\n": quoted += "\\n"
      case "\r": quoted += "\\r"
      case "\t": quoted += "\\t"
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}
