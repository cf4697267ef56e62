import Testing

@testable import VaultCrypto

@Suite struct KeyedHMACSHA512Tests {
  @Test func `repeated codes over split messages match the published vectors`() throws {
    var counts = VectorCounts()
    let cases = try VectorFile<HMACTests.Case>(compact: "hmac-sha512").vectors
    for vector in cases where vector.result == .valid {
      let keyed = try KeyedHMACSHA512(key: SecretBytes(copying: vector.key.bytes))
      for cut in [0, vector.msg.bytes.count / 2, vector.msg.bytes.count] {
        let code = try code(keyed, Array(vector.msg.bytes[..<cut]), Array(vector.msg.bytes[cut...]))
        #expect(Array(code.prefix(vector.tag.bytes.count)) == vector.tag.bytes, "\(vector.name)")
      }
      counts.matched += 1
    }
    #expect(counts.matched >= 10)
  }

  private func code(
    _ keyed: KeyedHMACSHA512, _ first: [UInt8], _ second: [UInt8]
  ) throws -> [UInt8] {
    var code = [UInt8](repeating: 0, count: KeyedHMACSHA512.byteCount)
    try code.withUnsafeMutableBytes { code in
      guard let start = code.baseAddress else { return }
      try first.withUnsafeBytes { first in
        try second.withUnsafeBytes { try keyed.writeCode(of: first, $0, to: start) }
      }
    }
    return code
  }
}
