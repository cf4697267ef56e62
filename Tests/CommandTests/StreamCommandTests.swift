import Foundation
import TestSupport
import Testing

/// The commands `encrypt` and `decrypt`.
@Suite struct StreamCommandTests {
  let home: TestHome

  init() throws {
    home = try TestHome.secured()
    try home.createVault()
  }

  private func encrypt(_ bytes: [UInt8], _ options: String...) throws -> Program {
    try home.unlocked(["encrypt", "v"] + options, input: bytes)
  }

  private func decrypt(_ bytes: [UInt8], _ options: String...) throws -> Program {
    try home.unlocked(["decrypt", "v"] + options, input: bytes)
  }

  @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 3_000_001])
  func `decrypt restores what encrypt has sealed`(byteCount: Int) throws {
    let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    let sealed = try encrypt(bytes).expect(0).output
    #expect(sealed.count == byteCount + 60 + max(0, byteCount - 1) / 65_536 * 16)
    #expect(try decrypt(sealed).expect(0).output == bytes)
  }

  @Test func `changed, truncated and foreign data is refused`() throws {
    let bytes = [UInt8](repeating: 7, count: 200_000)
    let sealed = try encrypt(bytes, "--context", "here").expect(0).output
    #expect(try decrypt(sealed, "--context", "here").output == bytes)
    #expect(try decrypt(sealed).status == 65)
    #expect(try decrypt(sealed, "--context", "there").status == 65)
    for offset in [50, 70_000, sealed.count - 1] {
      var changed = sealed
      changed[offset] ^= 1
      let program = try decrypt(changed, "--context", "here")
      #expect(program.status == 65, "byte \(offset)")
      #expect(bytes.starts(with: program.output) && program.output.count < bytes.count)
    }
    for count in [0, 20, 44, 50, 65_000, 150_000, sealed.count - 1] {
      let program = try decrypt(Array(sealed.prefix(count)), "--context", "here")
      #expect(program.status == 65, "\(count) bytes")
    }
    let other = try home.unlocked(
      ["decrypt", "messaging", "--context", "here"], input: sealed)
    #expect(other.status == 66 && other.output.isEmpty)
  }

  @Test func `standard input cannot carry data and a secret`() throws {
    #expect(try home.run("encrypt", "v", "--password-fd", "0", input: "x").status == 64)
  }
}
