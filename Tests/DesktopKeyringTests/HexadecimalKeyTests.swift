import Testing
import VaultCrypto

@testable import DesktopKeyring

@Suite struct HexadecimalKeyTests {
  private static func text(_ text: String) -> SecretBytes {
    SecretBytes(copying: Array(text.utf8))
  }

  @Test func `a key's text has two lowercase digits for each byte`() {
    let key = SecretBytes(
      copying: Array(stride(from: 0, to: 256, by: 8).map { UInt8($0 | $0 >> 5) }))
    let expected = key.withBytes { key in
      (0..<key.byteCount).map { index in
        let byte = key.unsafeLoad(fromByteOffset: index, as: UInt8.self)
        return (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }.joined()
    }
    let isEqual = SecretBytes.isEqual(HexadecimalKey.text(of: key), Self.text(expected))
    #expect(isEqual)
  }

  @Test func `each byte comes back from its text`() {
    for first in stride(from: 0, to: 256, by: 32) {
      let key = SecretBytes(copying: (0..<32).map { UInt8(first + $0) })
      let isEqual =
        switch HexadecimalKey.key(in: HexadecimalKey.text(of: key)) {
        case .some(let back): SecretBytes.isEqual(back, key)
        case .none: false
        }
      #expect(isEqual)
    }
  }

  @Test func `a text with any character that is no lowercase digit is no key`() {
    for character in UInt8.min...UInt8.max where !Array("0123456789abcdef".utf8).contains(character)
    {
      for place in [0, 1, 63] {
        var text = [UInt8](repeating: 0x30, count: 64)
        text[place] = character
        let key = HexadecimalKey.key(in: SecretBytes(copying: text))
        let isRefused =
          switch key {
          case .some: false;
          case .none: true
          }
        #expect(isRefused, "\(character)")
      }
    }
  }

  @Test(arguments: ["", String(repeating: "0", count: 63), String(repeating: "0", count: 65)])
  func `a text of another length is no key`(text: String) {
    let key = HexadecimalKey.key(in: Self.text(text))
    let isRefused =
      switch key {
      case .some: false;
      case .none: true
      }
    #expect(isRefused)
  }
}
