/// The body of a D-Bus message in its wire format: little-endian, each value aligned to its size.
///
/// https://dbus.freedesktop.org/doc/dbus-specification.html#message-protocol-marshaling
struct BusBody {
  private(set) var bytes: [UInt8] = []
  private(set) var signature = ""

  // MARK: Values, with their types

  func string(_ text: String) -> BusBody { adding("s") { $0.put(text) } }
  func path(_ path: String) -> BusBody { adding("o") { $0.put(path) } }
  func number(_ number: UInt32) -> BusBody { adding("u") { $0.put(number) } }

  func paths(_ paths: [String]) -> BusBody {
    adding("ao") { body in
      body.putArray(alignment: 4) { for path in paths { $0.put(path) } }
    }
  }

  func texts(_ texts: [(String, String)]) -> BusBody {
    adding("a{ss}") { body in
      body.putArray(alignment: 8) {
        for (key, value) in texts {
          $0.align(8)
          $0.put(key)
          $0.put(value)
        }
      }
    }
  }

  /// The structure that the specification calls Secret.
  func secret(_ session: String, _ value: [UInt8]) -> BusBody {
    adding("(oayays)") { body in
      body.align(8)
      body.put(session)
      body.put([])
      body.put(value)
      body.put("text/plain")
    }
  }

  func flag(_ flag: Bool) -> BusBody { adding("b") { $0.put(flag ? 1 as UInt32 : 0) } }

  /// The value of another body, as a variant.
  func variant(_ inner: (BusBody) -> BusBody) -> BusBody {
    adding("v") { body in
      // The value is aligned relative to the message, not to itself.
      var value = body
      value.signature = ""
      let signature = inner(BusBody()).signature
      value.putSignature(signature)
      body = inner(value)
    }
  }

  // MARK: Bytes

  private func adding(_ type: String, _ put: (inout BusBody) -> Void) -> BusBody {
    var body = self
    put(&body)
    body.signature = signature + type
    return body
  }

  mutating func align(_ byteCount: Int) { while bytes.count % byteCount != 0 { bytes.append(0) } }

  mutating func put(_ byte: UInt8) { bytes.append(byte) }

  mutating func put(_ number: UInt32) {
    align(4)
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func put(_ text: String) {
    put(UInt32(text.utf8.count))
    bytes.append(contentsOf: text.utf8)
    bytes.append(0)
  }

  mutating func put(_ value: [UInt8]) {
    put(UInt32(value.count))
    bytes.append(contentsOf: value)
  }

  mutating func putSignature(_ signature: String) {
    bytes.append(UInt8(signature.utf8.count))
    bytes.append(contentsOf: signature.utf8)
    bytes.append(0)
  }

  mutating func putArray(alignment: Int, _ elements: (inout BusBody) -> Void) {
    put(0 as UInt32)
    let place = bytes.count - 4
    align(alignment)
    let start = bytes.count
    elements(&self)
    withUnsafeBytes(of: UInt32(bytes.count - start).littleEndian) {
      bytes.replaceSubrange(place..<place + 4, with: $0)
    }
  }
}
