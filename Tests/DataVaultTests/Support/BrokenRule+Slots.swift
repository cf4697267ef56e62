/// Rules of the slots for recovery codes and key files.
extension BrokenRule {
  static let slots: [BrokenRule] = ["recovery", "keyfile"].flatMap { kind in
    [
      slot(
        "\(kind)-slot-with-p2c", "\(kind):a", more: #","p2s":"AQIDBAUGBwgJCgsMDQ4PEA","p2c":300000"#
      ),
      slot("\(kind)-slot-with-a128kw", "\(kind):a", algorithm: "A128KW"),
      slot("\(kind)-slot-with-dir", "\(kind):a", algorithm: "dir"),
      slot("\(kind)-slot-without-a-name", "\(kind):"),
      slot("\(kind)-slot-without-a-colon", kind),
      slot("\(kind)-slot-with-a-long-name", "\(kind):\(String(repeating: "n", count: 33))"),
      slot("\(kind)-slot-with-a-capital", "\(kind):Paper"),
      slot("\(kind)-slot-with-a-slash", "\(kind):a/b"),
      slot("\(kind)-slot-of-a-name-twice", "\(kind):a", "\(kind):a"),
      slot("\(kind)-slot-with-a-short-key", "\(kind):a", wrapping: Array(1...24)),
      slot("\(kind)-slot-with-a-long-key", "\(kind):a", wrapping: Array(1...40)),
    ]
  }

  private static func slot(
    _ name: String, _ kids: String..., algorithm: String = "A256KW", more: String = "",
    wrapping contentKey: [UInt8] = VaultFileBuilder.contentKey
  ) -> BrokenRule {
    BrokenRule(name) { builder in
      for kid in kids {
        let slot = try? VaultFileBuilder.slot(
          kid, algorithm: algorithm, more: more, key: SlotSecrets.keyFile, wrapping: contentKey)
        builder.extraSlots += slot ?? ""
      }
    }
  }
}
