internal import StrictJSON

/// Reads the known members of a JSON object, and refuses an object that has others.
///
/// Every function that takes a member marks it as read. ``requireAllRead()`` comes last.
struct MemberReader {
  private let members: [JSONMember]
  private var namesRead: Set<[UInt8]> = []

  init(_ members: [JSONMember]) {
    self.members = members
  }

  func requireAllRead() throws(LineFault) {
    guard namesRead.count == members.count else { throw LineFault("has an unknown member") }
  }

  /// The member's value; nil if there is no such member.
  ///
  /// JSON's null is a value, which no function here accepts.
  private mutating func take(_ name: String) -> JSONValue? {
    guard let value = members[name] else { return nil }
    namesRead.insert(Array(name.utf8))
    return value
  }

  private mutating func value<Value>(
    _ name: String, _ kind: String, _ convert: (JSONValue) -> Value?
  ) throws(LineFault) -> Value? {
    guard let member = take(name) else { return nil }
    guard let value = convert(member) else {
      throw LineFault("has a \(name) that is not \(kind)")
    }
    return value
  }

  private func require<Value>(_ value: Value?, _ name: String) throws(LineFault) -> Value {
    guard let value else { throw LineFault("has no \(name)") }
    return value
  }

  mutating func optionalText(_ name: String) throws(LineFault) -> String? {
    try value(name, "a string") { $0.string }
  }

  mutating func text(_ name: String) throws(LineFault) -> String {
    try require(optionalText(name), name)
  }

  /// 0 or more.
  mutating func optionalNumber(_ name: String) throws(LineFault) -> Int? {
    try value(name, "a whole number") { value in
      value.integer.flatMap { $0 >= 0 ? Int($0) : nil }
    }
  }

  mutating func number(_ name: String) throws(LineFault) -> Int {
    try require(optionalNumber(name), name)
  }

  /// A number of attempts, limited so that the engine can add to it without overflow.
  mutating func attemptCount(_ name: String) throws(LineFault) -> Int {
    let count = try number(name)
    guard count < 1_000_000_000 else { throw LineFault("has a \(name) of more than 9 digits") }
    return count
  }

  /// Why a delivery failed or a message died.
  mutating func reason() throws(LineFault) -> String {
    let reason = try text("reason")
    guard (1...EngineConfiguration.maximumReasonByteCount).contains(reason.utf8.count) else {
      throw LineFault(
        "has a reason of \(reason.utf8.count) bytes, beyond 1 to "
          + "\(EngineConfiguration.maximumReasonByteCount)")
    }
    return reason
  }

  /// A boolean; false if it is left out.
  mutating func flag(_ name: String) throws(LineFault) -> Bool {
    try value(name, "a truth value") { $0.boolean } ?? false
  }

  /// 1 to 18 digits, which fit into 64 bits.
  mutating func optionalTime(_ name: String) throws(LineFault) -> Int64? {
    try value(name, "a time") { value in
      guard let text = value.string, (1...18).contains(text.utf8.count),
        text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
      else { return nil }
      return Int64(text)
    }
  }

  mutating func time(_ name: String) throws(LineFault) -> Int64 {
    try require(optionalTime(name), name)
  }

  mutating func timetoken() throws(LineFault) -> Int64 {
    let text = try text("timetoken")
    guard let timetoken = Timetoken(text) else {
      throw LineFault("has a timetoken without 17 digits")
    }
    return timetoken.rawValue
  }

  mutating func channel() throws(LineFault) -> Channel { Channel(stored: try name("channel")) }
  mutating func consumer() throws(LineFault) -> Consumer { Consumer(stored: try name("consumer")) }

  private mutating func name(_ member: String) throws(LineFault) -> String {
    let name = try text(member)
    if let fault = Name.fault(in: name) { throw LineFault("has a \(member) whose name \(fault)") }
    return name
  }

  mutating func optionalHexadecimal(
    _ name: String, byteCount: Int
  ) throws(LineFault) -> String? {
    try value(name, "a hexadecimal number of \(byteCount) bytes") { value in
      guard let text = value.string, text.utf8.count == 2 * byteCount,
        text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
      else { return nil }
      return text
    }
  }

  mutating func hexadecimal(_ name: String, byteCount: Int) throws(LineFault) -> String {
    try require(optionalHexadecimal(name, byteCount: byteCount), name)
  }

  mutating func optionalElements(_ name: String) throws(LineFault) -> [JSONValue]? {
    try value(name, "an array") { $0.elements }
  }

  mutating func optionalMembers(_ name: String) throws(LineFault) -> [JSONMember]? {
    try value(name, "an object") { $0.members }
  }

  /// An array of objects, which `read` reads one by one; empty if it is left out.
  mutating func objects<Value>(
    _ name: String, _ read: (inout MemberReader) throws(LineFault) -> Value
  ) throws(LineFault) -> [Value] {
    try (optionalElements(name) ?? []).map { element throws(LineFault) in
      guard let members = element.members else {
        throw LineFault("has an element in \(name) that is not an object")
      }
      var object = MemberReader(members)
      let value = try read(&object)
      try object.requireAllRead()
      return value
    }
  }
}
