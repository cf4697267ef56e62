/// The URI of a database file with parameters for SQLite: <https://sqlite.org/uri.html>.
package struct DatabaseURI {
  package let text: String

  /// - Parameter parameters: such as "immutable=1&vfs=unix".
  package init(_ path: String, parameters: String) {
    text = "file:\(Self.escaped(path))?\(parameters)"
  }

  private static func escaped(_ path: String) -> String {
    path.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"),
        UInt8(ascii: "_"), UInt8(ascii: "."):
        String(UnicodeScalar(byte))
      default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }.joined()
  }
}
