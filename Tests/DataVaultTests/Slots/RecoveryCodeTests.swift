import DataVault
import TestSupport
import Testing
import VaultCrypto

@Suite struct RecoveryCodeTests {
  private func refusal(_ text: String) -> VaultError? {
    do throws(VaultError) {
      _ = try RecoveryCode(parsing: secret(text)).text().byteCount
      return nil
    } catch {
      return error
    }
  }

  private func reading(_ text: String) throws -> String {
    try RecoveryCode(parsing: secret(text)).text().text()
  }

  /// Computed in Python from docs/reference/vault-format.md.
  @Test(arguments: [
    (Array(1...20), "0410-6105-0R3G-G28A-1C60-T3GF-208H-44RM-W4QG"),
    ([UInt8](repeating: 0, count: 20), "0000-0000-0000-0000-0000-0000-0000-0000-VS3W"),
    ([UInt8](repeating: 255, count: 20), "ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-KA6W"),
    (
      stride(from: 0, to: 200, by: 10).map { UInt8($0) },
      "0051-87H8-68Y4-CM2T-CHQ7-H0MC-JTGA-ND5Y-RYR8"
    ),
  ])
  func `a code's text follows docs/reference/vault-format.md`(bytes: [UInt8], text: String) throws {
    #expect(try RecoveryCode(bytes: SecretBytes(copying: bytes)).text().text() == text)
    #expect(try reading(text) == text)
  }

  @Test func `the text of any code parses to the same code`() throws {
    for _ in 0..<200 {
      let text = try RecoveryCode(bytes: .random(byteCount: 20)).text().text()
      #expect(text.wholeMatch(of: /([0-9A-HJKMNP-TV-Z]{4}-){8}[0-9A-HJKMNP-TV-Z]{4}/) != nil)
      #expect(try reading(text) == text)
    }
  }

  @Test(arguments: [
    "041061050R3GG28A1C60T3GF208H44RMW4QG", "0410-6105-0r3g-g28a-1c60-t3gf-208h-44rm-w4qg",
    "o4io-6lO5-Or3g-g28a-Ic60-t3gf-2O8h-44rm-w4qg",
    "  0410 6105 0R3G G28A 1C60 T3GF 208H 44RM W4QG ", "0-4-1-0--61050R3GG28A1C60T3GF208H44RMW4QG-",
  ])
  func `parsing ignores hyphens, spaces and case, and reads I, L and O as digits`(
    typed: String
  ) throws {
    #expect(try reading(typed) == SlotSecrets.codeText)
  }

  @Test(arguments: [
    "", " - ", "0410", String(SlotSecrets.codeText.dropLast()),
    SlotSecrets.codeText + "0", String(repeating: "0", count: 5000),
  ])
  func `a code of another length is reported as such`(typed: String) {
    #expect(refusal(typed)?.code == .recoveryCodeLength)
  }

  @Test(arguments: ["U", "u", "*", "\t", "\n", "\0", "é", "@", "[", "`", "{", "/", ":", "\u{7F}"])
  func `an invalid character is reported with its position`(character: String) throws {
    let error = try #require(refusal(SlotSecrets.codeText.replacing("R3", with: "R" + character)))
    #expect(error.code == .recoveryCodeCharacter)
    #expect(error.message.contains("character 11 "))
  }

  @Test func `any mistyped character and any two exchanged ones are detected`() throws {
    let characters = Array(SlotSecrets.codeText)
    var unseen = 0
    for position in characters.indices where characters[position] != "-" {
      for other in "0123456789ABCDEFGHJKMNPQRSTVWXYZ" where other != characters[position] {
        var mistyped = characters
        mistyped[position] = other
        if refusal(String(mistyped))?.code != .recoveryCodeMistyped { unseen += 1 }
      }
      for next in characters.indices[(position + 1)...] {
        var exchanged = characters
        exchanged.swapAt(position, next)
        guard characters[next] != "-", exchanged != characters else { continue }
        if refusal(String(exchanged))?.code != .recoveryCodeMistyped { unseen += 1 }
      }
    }
    #expect(unseen == 0)
  }

  @Test(arguments: ["W4QH", "W4Q", "W4QU", "W4QG0"]) func `no error contains any of the code`(
    end: String
  ) throws {
    let typed = SlotSecrets.codeText.replacing("W4QG", with: end)
    let error = try #require(refusal(typed))
    for group in typed.split(separator: "-") {
      #expect(!"\(error) \(error.message) \(error.hint ?? "")".contains(group))
    }
  }
}
