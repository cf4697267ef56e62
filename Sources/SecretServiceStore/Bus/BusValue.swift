internal import CGIO

/// The D-Bus values that the Secret Service uses.
indirect enum BusValue: Sendable, Equatable {
  case string(String)
  case objectPath(String)
  case boolean(Bool)
  case bytes([UInt8])
  case objectPaths([String])
  /// `a{ss}`.
  case texts([String: String])
  /// `a{sv}`, with the values inside the variants.
  case properties([String: BusValue])
  case variant(BusValue)
  /// A structure, or the arguments of a call.
  case tuple([BusValue])
  /// A type that this code does not use.
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

/// Conversion to and from GLib's values.
///
/// https://docs.gtk.org/glib/struct.Variant.html
extension BusValue {
  /// A new value with a floating reference, which its receiver consumes.
  func makeVariant() -> OpaquePointer? {
    switch self {
    case .string(let text):
      return unsafe g_variant_new_string(text)
    case .objectPath(let path):
      return unsafe g_variant_new_object_path(path)
    case .boolean(let flag):
      return unsafe g_variant_new_boolean(flag ? 1 : 0)
    case .bytes(let bytes):
      return unsafe bytes.withUnsafeBytes {
        unsafe g_variant_new_fixed_array(cgio_byte_type(), $0.baseAddress, gsize($0.count), 1)
      }
    case .variant(let value):
      return unsafe g_variant_new_variant(value.makeVariant())
    case .tuple(let elements):
      var children = unsafe elements.map { unsafe $0.makeVariant() }
      return unsafe g_variant_new_tuple(&children, gsize(children.count))
    case .texts(let texts):
      var entries = unsafe texts.map {
        unsafe g_variant_new_dict_entry(
          g_variant_new_string($0.key), g_variant_new_string($0.value))
      }
      return unsafe g_variant_new_array(
        cgio_text_entry_type(), &entries, gsize(entries.count))
    case .properties(let properties):
      var entries = unsafe properties.map {
        unsafe g_variant_new_dict_entry(
          g_variant_new_string($0.key), g_variant_new_variant($0.value.makeVariant()))
      }
      return unsafe g_variant_new_array(
        cgio_property_entry_type(), &entries, gsize(entries.count))
    case .objectPaths, .unknown:
      preconditionFailure("no call of the Secret Service takes such an argument")
    }
  }

  /// Copies the contents of a message.
  init(_ variant: OpaquePointer) {
    switch unsafe String(cString: g_variant_get_type_string(variant)) {
    case "s":
      self = .string(unsafe Self.text(variant))
    case "o":
      self = .objectPath(unsafe Self.text(variant))
    case "b":
      self = .boolean(unsafe g_variant_get_boolean(variant) != 0)
    case "ay":
      var count: gsize = 0
      let start = unsafe g_variant_get_fixed_array(variant, &count, 1)
      let bytes = unsafe UnsafeRawBufferPointer(start: start, count: Int(count))
      self = .bytes(unsafe Array(bytes))
    case "ao":
      self = .objectPaths(unsafe Self.children(of: variant).compactMap(\.objectPath))
    case "a{ss}":
      let pairs = unsafe Self.children(of: variant).compactMap { entry -> (String, String)? in
        guard let pair = entry.elements, pair.count == 2, let key = pair[0].string,
          let value = pair[1].string
        else { return nil }
        return (key, value)
      }
      self = .texts(Dictionary(pairs, uniquingKeysWith: { first, _ in first }))
    case "v":
      self = .variant(unsafe Self.children(of: variant).first ?? .unknown)
    case let type where type.hasPrefix("(") || type.hasPrefix("{"):
      self = .tuple(unsafe Self.children(of: variant))
    default:
      self = .unknown
    }
  }

  private static func text(_ variant: OpaquePointer) -> String {
    unsafe String(cString: g_variant_get_string(variant, nil))
  }

  private static func children(of variant: OpaquePointer) -> [BusValue] {
    (0..<(unsafe g_variant_n_children(variant))).map { index in
      guard let child = unsafe g_variant_get_child_value(variant, index) else { return .unknown }
      defer { unsafe g_variant_unref(child) }
      return unsafe BusValue(child)
    }
  }
}
