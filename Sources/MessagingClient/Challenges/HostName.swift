internal import Glibc

/// The hosts of origins and locations: names and addresses in one form each.
///
/// A resolver also takes `2130706433`, `0x7f.1` and `127.1` for 127.0.0.1. They are refused, so that two texts are the
/// same host only if they look the same.
enum HostName {
  /// The longest name in bytes (RFC 1035, 2.3.4).
  private static let maximumByteCount = 253

  /// A host in lower case.
  ///
  /// - Throws: `malformed` for what is neither a name nor an address.
  static func canonical(_ host: String) throws(LocationError) -> String {
    if host.hasPrefix("[") { return try ipv6(host) }
    guard (1...maximumByteCount).contains(host.utf8.count) else {
      throw .malformed("a host has 1 to \(maximumByteCount) bytes")
    }
    let labels = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    for label in labels {
      guard (1...63).contains(label.count) else {
        throw .malformed("each label of a host has 1 to 63 bytes, and a host ends without a dot")
      }
      guard label.allSatisfy(isLabelByte) else {
        throw .malformed(
          "a host consists of letters, digits, hyphens, underscores and dots, in ASCII")
      }
    }
    let lowered = lowercased(host)
    // As in the URL standard: what ends in a number is an address, or nothing.
    guard let last = labels.last, isNumber(last) else { return lowered }
    guard isIPv4(host) else {
      throw .malformed("an IPv4 address is four numbers from 0 to 255 without leading zeros")
    }
    return lowered
  }

  /// Whether a text is an IPv4 address of four numbers.
  static func isIPv4(_ host: String) -> Bool {
    let labels = host.split(separator: ".", omittingEmptySubsequences: false)
    return labels.count == 4
      && labels.allSatisfy { label in
        label.utf8.allSatisfy(isDigit) && UInt8(label).map { String($0) == label } ?? false
      }
  }

  /// ASCII letters in lower case.
  static func lowercased(_ text: some StringProtocol) -> String {
    String(
      decoding: text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }

  /// An IPv6 address in brackets in the form of RFC 5952; a zone is refused.
  private static func ipv6(_ host: String) throws(LocationError) -> String {
    let inner = String(host.dropFirst().dropLast())
    var address = in6_addr()
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let isAddress =
      host.hasSuffix("]") && inner.utf8.allSatisfy { isHexadecimal($0) || $0 == 0x3A || $0 == 0x2E }
    guard isAddress, unsafe inet_pton(AF_INET6, inner, &address) == 1,
      unsafe inet_ntop(AF_INET6, &address, &text, socklen_t(text.count)) != nil
    else { throw .malformed("what is in brackets is no IPv6 address without a zone") }
    let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return "[\(String(decoding: bytes, as: UTF8.self))]"
  }

  /// Whether a label is a decimal, or a hexadecimal number with `0x`.
  private static func isNumber(_ label: Substring.UTF8View) -> Bool {
    if label.allSatisfy(isDigit) { return true }
    let start = label.prefix(2).map { $0 | 0x20 }
    return start == [0x30, 0x78] && label.dropFirst(2).allSatisfy(isHexadecimal)
  }

  private static func isLabelByte(_ byte: UInt8) -> Bool {
    isDigit(byte) || (0x61...0x7A).contains(byte | 0x20) || byte == 0x2D || byte == 0x5F
  }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    isDigit(byte) || (0x61...0x66).contains(byte | 0x20)
  }

  static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
