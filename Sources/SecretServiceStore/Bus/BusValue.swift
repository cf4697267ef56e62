/// What D-Bus messages are made of, as far as the Secret Service needs it.
indirect enum BusValue: Sendable, Equatable {
  case string(String)
  case objectPath(String)
  case boolean(Bool)
  case bytes([UInt8])
  case objectPaths([String])
  /// `a{ss}`
  case texts([String: String])
  /// `a{sv}`, with the values as they are inside of the variants.
  case properties([String: BusValue])
  case variant(BusValue)
  /// A structure, or the arguments of a call.
  case tuple([BusValue])
  /// A type that nothing here asks for.
  case unknown

  var string: String? { if case .string(let text) = self { text } else { nil } }
  var objectPath: String? { if case .objectPath(let path) = self { path } else { nil } }
  var boolean: Bool? { if case .boolean(let flag) = self { flag } else { nil } }
  var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
  var objectPaths: [String]? { if case .objectPaths(let paths) = self { paths } else { nil } }
  var texts: [String: String]? { if case .texts(let texts) = self { texts } else { nil } }
  var inner: BusValue? { if case .variant(let value) = self { value } else { nil } }
  var elements: [BusValue]? { if case .tuple(let elements) = self { elements } else { nil } }
}
