internal import Foundation
internal import MessagingQueue

/// A message as one line of JSON: `payload` if it is UTF-8, else `payloadBase64`.
///
/// Everything that belongs to the message is in it, and is read back; members that say what is the rule
/// for a message are left out.
struct NDJSONMessage {
  private let timetoken: Timetoken
  private let channel: Channel
  private let payload: [UInt8]
  private let headers: [String: String]
  private let priority: Priority
  private let orderingKey: String?
  private let expires: Int64?
  private var due: Int64?
  private var attempt: Int?
  private var token: String?

  init(_ delivery: Delivery, withToken: Bool) {
    timetoken = delivery.timetoken
    channel = delivery.channel
    payload = delivery.payload
    headers = delivery.headers
    priority = delivery.priority
    orderingKey = delivery.orderingKey
    expires = delivery.expires
    attempt = delivery.attempt
    token = withToken ? delivery.token.description : nil
  }

  init(_ message: LogMessage) {
    timetoken = message.timetoken
    channel = message.channel
    payload = message.payload
    headers = message.headers
    priority = message.priority
    orderingKey = message.orderingKey
    expires = message.expires
    due = message.due
  }

  /// The line, newline included.
  ///
  /// Timetokens are strings: they have more digits than JavaScript keeps.
  var line: [UInt8] {
    var line = #"{"timetoken":"\#(timetoken)","channel":"#
    line += Self.quoted(channel.name)
    if let attempt { line += #","attempt":\#(attempt)"# }
    if let token { line += #","token":"\#(token)""# }
    if priority != .normal { line += #","priority":\#(priority.rawValue)"# }
    if let due { line += #","at":"\#(DateArgument(ticks: due).text)""# }
    if let expires { line += #","expires":"\#(DateArgument(ticks: expires).text)""# }
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
