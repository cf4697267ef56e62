import Foundation

/// Rules of the two JWEs and of the clear members that need no password.
extension BrokenRule {
  static let envelopes: [BrokenRule] = [
    cutting("key-iv-short", in: \.editKey, "iv", to: 11),
    cutting("key-tag-short", in: \.editKey, "tag", to: 15),
    cutting("key-tag-missing", in: \.editKey, "tag", to: 0),
    cutting("contents-iv-short", in: \.editContents, "iv", to: 11),
    cutting("contents-tag-short", in: \.editContents, "tag", to: 15),
    cutting("contents-tag-missing", in: \.editContents, "tag", to: 0),
    BrokenRule("slot-without-a-wrapped-key") {
      $0.editKey = { key in
        let start = key.range(of: #","encrypted_key""#)!
        return String(key[..<start.lowerBound] + key[key.range(of: #"}],"iv""#)!.lowerBound...])
      }
    },
    BrokenRule("password-slot-with-a-short-key") { $0.wrappedByPassword = Array(1...24) },
    BrokenRule("password-slot-with-a-long-key") { $0.wrappedByPassword = Array(1...40) },
    BrokenRule("password-slot-of-another-name") { $0.slotName = "password:mine" },
    BrokenRule("p2s-long") { $0.p2s = Base64.url(Array(1...17)) },
    BrokenRule("p2c-missing") {
      let count = $0.iterationCount
      $0.editKey = { $0.replacing(",\"p2c\":\(count)", with: "") }
    },
  ]

  private static func cutting(
    _ name: String, in member: any WritableKeyPath<VaultFileBuilder, (String) -> String> & Sendable,
    _ part: String, to byteCount: Int
  ) -> BrokenRule {
    BrokenRule(name) { builder in
      builder[keyPath: member] = { text in
        // The last member with that name: recipients come before it, and the clear members have
        // none.
        guard let start = text.range(of: "\"\(part)\":\"", options: .backwards)?.upperBound,
          let end = text[start...].firstIndex(of: "\"")
        else { return text }
        let bytes = Base64.bytes(String(text[start..<end])).prefix(byteCount)
        return text[..<start] + Base64.url(Array(bytes)) + text[end...]
      }
    }
  }
}
