/// A version of the protocol, whose pages are at https://stomp.github.io.
enum STOMPVersion: String, Sendable, CaseIterable, Comparable {
  case v10 = "1.0"
  case v11 = "1.1"
  case v12 = "1.2"

  static func < (a: STOMPVersion, b: STOMPVersion) -> Bool { a.rawValue < b.rawValue }

  /// The newest version that a client lists in `accept-version`; nil if this server has none of them.
  ///
  /// - Parameter accepted: the header; a client that sends none speaks 1.0.
  static func newest(of accepted: String?) -> STOMPVersion? {
    guard let accepted else { return .v10 }
    return accepted.split(separator: ",").compactMap {
      STOMPVersion(rawValue: $0.trimmingPrefix(" ").description)
    }.max()
  }

  /// What the protocol is called where a WebSocket is opened.
  var subprotocol: String {
    switch self {
    case .v10: "v10.stomp"
    case .v11: "v11.stomp"
    case .v12: "v12.stomp"
    }
  }
}

/// One frame: a command, headers and a body.
struct STOMPFrame: Sendable, Equatable {
  struct Header: Sendable, Equatable {
    let name: String
    let value: String
  }

  let command: String
  private(set) var headers: [Header]
  var body: [UInt8]

  init(_ command: String, _ headers: [(String, String)] = [], body: [UInt8] = []) {
    self.command = command
    self.headers = headers.map { Header(name: $0, value: $1) }
    self.body = body
  }

  /// The value of a header; of repeated ones, the first counts.
  subscript(name: String) -> String? {
    headers.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The value of a header that the frame needs.
  ///
  /// - Throws: ``STOMPFault`` without one.
  func value(_ name: String) throws(STOMPFault) -> String {
    guard let value = self[name], !value.isEmpty else { throw STOMPFault("\(name) is missing") }
    return value
  }

  mutating func append(_ name: String, _ value: String) {
    headers.append(Header(name: name, value: value))
  }

  /// Whether headers have no escapes in any version, so that those of 1.0 can read them.
  static func isUnescaped(_ command: String) -> Bool {
    ["CONNECT", "STOMP", "CONNECTED"].contains(command)
  }

  /// The bytes of the frame, for a client of this version.
  ///
  /// Version 1.0 has no escapes: a header with a line break, or a name with a colon, is left out. Version 1.1 has none
  /// for a carriage return.
  func encoded(_ version: STOMPVersion) -> [UInt8] {
    let version = Self.isUnescaped(command) ? .v10 : version
    var bytes: [UInt8] = []
    bytes.reserveCapacity(body.count + 64 * (headers.count + 1))
    bytes += command.utf8
    bytes.append(.lineFeed)
    for header in headers {
      guard let name = header.name.escaped(version, isName: true),
        let value = header.value.escaped(version, isName: false)
      else { continue }
      bytes += name
      bytes.append(.colon)
      bytes += value
      bytes.append(.lineFeed)
    }
    bytes.append(.lineFeed)
    bytes += body
    bytes.append(0)
    return bytes
  }
}

extension UInt8 {
  static let lineFeed = UInt8(ascii: "\n")
  static let carriageReturn = UInt8(ascii: "\r")
  static let colon = UInt8(ascii: ":")
  static let backslash = UInt8(ascii: "\\")
}

extension String {
  /// The bytes with escapes; nil if this version cannot express the text.
  fileprivate func escaped(_ version: STOMPVersion, isName: Bool) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(utf8.count)
    for byte in utf8 {
      switch (byte, version) {
      case (0, _): return nil
      case (.lineFeed, .v10), (.carriageReturn, .v10), (.carriageReturn, .v11): return nil
      case (.colon, .v10): if isName { return nil } else { bytes.append(byte) }
      case (.backslash, .v10): bytes.append(byte)
      case (.lineFeed, _): bytes += "\\n".utf8
      case (.colon, _): bytes += "\\c".utf8
      case (.backslash, _): bytes += "\\\\".utf8
      case (.carriageReturn, .v12): bytes += "\\r".utf8
      default: bytes.append(byte)
      }
    }
    return bytes
  }
}
