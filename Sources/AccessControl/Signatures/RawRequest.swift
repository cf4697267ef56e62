/// A request as it was sent: what a signature covers.
public struct RawRequest: Sendable {
  /// A parameter of the query, still encoded.
  struct Parameter: Sendable {
    let name: ArraySlice<UInt8>
    let value: ArraySlice<UInt8>

    func isNamed(_ text: StaticString) -> Bool { name.elementsEqual("\(text)".utf8) }
  }

  /// The method, in upper case.
  public let method: String

  /// The path, still encoded.
  package let path: ArraySlice<UInt8>

  /// The parameters of the query, in their order.
  let parameters: [Parameter]

  /// The body; if it was compressed, what it is without that.
  public let body: [UInt8]

  /// Takes the parts of a request.
  ///
  /// - Parameters:
  ///   - target: the path and the query, as the request line has them.
  ///   - body: the decompressed body. SDKs sign it before they compress it.
  public init(method: String, target: [UInt8], body: [UInt8] = []) {
    self.method = method
    self.body = body
    let mark = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
    path = target[..<mark]
    parameters = target[mark...].dropFirst().split(separator: UInt8(ascii: "&")).map { piece in
      let equals = piece.firstIndex(of: UInt8(ascii: "=")) ?? piece.endIndex
      return Parameter(name: piece[..<equals], value: piece[equals...].dropFirst())
    }
  }

  /// The segments of the path, percent-decoded.
  var segments: [[UInt8]] {
    path.split(separator: UInt8(ascii: "/")).map { PercentEncoding.decode($0) }
  }

  /// The decoded value of the first parameter with a name; nil if there is none.
  package func value(_ name: StaticString) -> [UInt8]? {
    parameters.first { $0.isNamed(name) }.map { PercentEncoding.decode($0.value) }
  }

  /// The decoded value of a parameter that is there once; nil otherwise.
  package func only(_ name: StaticString) -> [UInt8]? {
    parameters.count { $0.isNamed(name) } == 1 ? value(name) : nil
  }
}
