import DataVault
import DataVaultTesting
import Foundation
import Testing
import VaultCrypto

/// A vault file with one rule of the format broken.
struct BrokenRule: Sendable, CustomTestStringConvertible {
  let name: String
  let edit: @Sendable (inout VaultFileBuilder) -> Void

  init(_ name: String, _ edit: @escaping @Sendable (inout VaultFileBuilder) -> Void) {
    self.name = name
    self.edit = edit
  }

  var testDescription: String { name }

  /// Whether the fault is found before any password is tried.
  var needsNoPassword: Bool { Self.publicRuleNames.contains(name) }

  func file(_ builder: VaultFileBuilder = VaultFileBuilder()) throws -> [UInt8] {
    var builder = builder
    edit(&builder)
    return try builder.file()
  }

  /// A rule of the plaintext that the items break.
  static func items(_ name: String, _ items: String) -> BrokenRule {
    BrokenRule(name) { $0.items = items }
  }

  /// A rule that a replaced part of one of the builder's texts breaks.
  static func changing(
    _ name: String, in text: any WritableKeyPath<VaultFileBuilder, String> & Sendable,
    _ old: String, to new: String
  ) -> BrokenRule {
    BrokenRule(name) { $0[keyPath: text] = $0[keyPath: text].replacing(old, with: new) }
  }

  static func replacing(
    _ name: String, in member: any WritableKeyPath<VaultFileBuilder, (String) -> String> & Sendable,
    _ old: String, with new: String
  ) -> BrokenRule {
    BrokenRule(name) { $0[keyPath: member] = { $0.replacing(old, with: new) } }
  }

  /// A rule that another form of the slot's salt breaks.
  private static func base64(_ name: String, _ salt: String) -> BrokenRule {
    replacing(name, in: \.editKey, "AQIDBAUGBwgJCgsMDQ4PEA", with: salt)
  }

  private static let publicRuleNames = Set(
    (algorithms + shapes + envelopes + slots + clearMembers).map(\.name)
  ).subtracting(["jwk-of-another-type", "binding-without-keys", "keys-without-binding"])

  static let all =
    algorithms + shapes + envelopes + slots + clearMembers + plaintexts + policies + dataKeys
    + databaseKeys

  /// Rules whose files are too large for fixtures.
  static let unkept: Set = ["item-too-large", "data-keys-too-many"]

  static let algorithms: [BrokenRule] = [
    BrokenRule("slot-algorithm-hs256") { $0.algorithm = "PBES2-HS256+A256KW" },
    BrokenRule("slot-algorithm-a128kw") { $0.algorithm = "A128KW" },
    BrokenRule("slot-algorithm-dir") { $0.algorithm = "dir" },
    BrokenRule("password-slot-with-a256kw") { $0.algorithm = "A256KW" },
    BrokenRule("recovery-slot-with-pbes2") { $0.slotName = "recovery:paper" },
    BrokenRule("slot-of-unknown-kind") {
      $0.algorithm = "A256KW"
      $0.slotName = "card:mine"
    },
    BrokenRule("key-encrypted-a128gcm") {
      $0.keyProtected = #"{"enc":"A128GCM","cty":"jwk+json"}"#
    },
    BrokenRule("key-protected-with-crit") {
      $0.keyProtected = #"{"enc":"A256GCM","cty":"jwk+json","crit":["b64"]}"#
    },
    BrokenRule("key-protected-with-zip") {
      $0.keyProtected = #"{"enc":"A256GCM","cty":"jwk+json","zip":"DEF"}"#
    },
    BrokenRule("contents-alg-a256kw") {
      $0.contentsProtected = #"{"alg":"A256KW","enc":"A256GCM"}"#
    },
    BrokenRule("contents-enc-a256cbc-hs512") {
      $0.contentsProtected = #"{"alg":"dir","enc":"A256CBC-HS512"}"#
    },
    BrokenRule("jwk-of-another-type") { $0.jwkType = "RSA" },
  ]

  static let shapes: [BrokenRule] = [
    .replacing("white-space", in: \.editHead, ",\"contents\":", with: ", \"contents\":"),
    .replacing("byte-order-mark", in: \.editHead, "{\"key\"", with: "\u{FEFF}{\"key\""),
    BrokenRule("member-repeated") { $0.editHead = { $0 + "\"contents\":{}," } },
    BrokenRule("member-unknown") { $0.editHead = { $0 + "\"more\":1," } },
    BrokenRule("member-repeated-in-key") { $0.editKey = { $0.dropLast() + ",\"tag\":\"\"}" } },
    BrokenRule("member-repeated-in-contents") {
      $0.editContents = { $0.dropLast() + ",\"tag\":\"\"}" }
    },
    BrokenRule("member-missing-in-contents") {
      $0.editContents = { String($0[..<$0.range(of: ",\"tag\"")!.lowerBound]) + "}" }
    },
    BrokenRule("slot-header-with-more") {
      $0.statedIterationCount = "\($0.iterationCount),\"x\":1"
    },
    BrokenRule("p2c-leading-zero") { $0.statedIterationCount = "0\($0.iterationCount)" },
    BrokenRule("p2c-fraction") { $0.statedIterationCount = "\($0.iterationCount).0" },
    BrokenRule("p2c-negative") { $0.statedIterationCount = "-\($0.iterationCount)" },
    BrokenRule("p2c-string") { $0.statedIterationCount = "\"\($0.iterationCount)\"" },
    base64("base64-padded", "AQIDBAUGBwgJCgsMDQ4PEA=="),
    base64("base64-trailing-bits", "AQIDBAUGBwgJCgsMDQ4PEB"),
    base64("base64-of-impossible-length", "AQIDBAUGBwgJCgsMDQ4PE"),
    base64("base64-standard-alphabet", "AQID+AUGBwgJCgsMDQ4PEA"),
    BrokenRule("p2s-short") { $0.p2s = Base64.url(Array(1...15)) },
    BrokenRule("escape-in-a-name") { $0.slotName = "pass\\u0077ord" },
    BrokenRule("no-slots") {
      $0.editKey = { key in
        let start = key.range(of: "\"recipients\":[")!.upperBound
        return String(key[..<start] + key[key.range(of: "],\"iv\"")!.lowerBound...])
      }
    },
    BrokenRule("two-password-slots") {
      $0.extraSlots =
        #",{"header":{"alg":"PBES2-HS512+A256KW","kid":"password","p2s":"AQIDBAUGBwgJCgsMDQ4PEA","p2c":\#($0.iterationCount)},"encrypted_key":"\#(Base64.url(Array(1...40)))"}"#
    },
    BrokenRule("seventeen-slots") {
      $0.extraSlots = (1...16).map {
        #",{"header":{"alg":"A256KW","kid":"keyfile:k\#($0)"},"encrypted_key":"\#(Base64.url(Array(1...40)))"}"#
      }.joined()
    },
  ]

  static let clearMembers: [BrokenRule] = [
    BrokenRule("clear-member-repeated") { $0.clear = $0.clear.dropLast() + ",\"secured\":false}" },
    BrokenRule("clear-members-in-another-order") {
      $0.clear =
        #"{"version":1,"secured":true,"vault":"ID","retryLimit":0,"binding":null,"keyDigest":"DIGEST"}"#
    },
    BrokenRule("version-not-first") {
      $0.clear =
        #"{"vault":"ID","version":1,"secured":true,"retryLimit":0,"binding":null,"keyDigest":"DIGEST"}"#
    },
    .changing("retry-limit-too-large", in: \.clear, #"Limit":0"#, to: #"Limit":1001"#),
    .changing("retry-limit-negative", in: \.clear, #"Limit":0"#, to: #"Limit":-1"#),
    .changing("retry-limit-null", in: \.clear, #"Limit":0"#, to: #"Limit":null"#),
    .changing("secured-not-a-truth-value", in: \.clear, "SECURED", to: "1"),
    .changing(
      "key-digest-of-another-key", in: \.clear, "DIGEST",
      to: Base64.url(VaultFileBuilder.digest([1]))),
    BrokenRule("binding-of-seven-bytes") {
      $0.binding = #"{"database":"AQIDBAUGBw","state":"bound"}"#
    },
    BrokenRule("binding-in-unknown-state") {
      $0.binding = #"{"database":"AQIDBAUGBwg","state":"broken"}"#
    },
    BrokenRule("binding-without-keys") {
      $0.binding = #"{"database":"AQIDBAUGBwg","state":"bound"}"#
    },
    BrokenRule("keys-without-binding") {
      $0.databases = #"{"current":"\#(Base64.url(Array(1...32)))","pending":null,"anchor":null}"#
    },
  ]

  static let plaintexts: [BrokenRule] = [
    .items("items-repeated", #"{"a":{"string":"1"},"a":{"string":"2"}}"#),
    .items("items-repeated-behind-an-escape", #"{"a":{"string":"1"},"\u0061":{"string":"2"}}"#),
    .items("items-out-of-order", #"{"b":{"string":"1"},"a":{"string":"2"}}"#),
    .items("item-without-a-name", #"{"":{"string":"1"}}"#),
    .items("item-with-a-long-name", #"{"\#(String(repeating: "n", count: 256))":{"string":"1"}}"#),
    .items("item-of-two-kinds", #"{"a":{"string":"1","binary":""}}"#),
    .items("item-of-no-kind", #"{"a":{}}"#),
    .items("item-of-unknown-kind", #"{"a":{"text":"1"}}"#),
    .items("item-a-number", #"{"a":1}"#),
    .items("item-half-a-surrogate-pair", #"{"a":{"string":"\ud83d"}}"#),
    .items("item-surrogates-swapped", #"{"a":{"string":"\ude00\ud83d"}}"#),
    .items("item-unknown-escape", #"{"a":{"string":"\x41"}}"#),
    .items("item-escape-cut-short", #"{"a":{"string":"\u00"}}"#),
    .items("item-control-character", "{\"a\":{\"string\":\"\u{1}\"}}"),
    .items("item-binary-padded", #"{"a":{"binary":"AA=="}}"#),
    .items("item-binary-trailing-bits", #"{"a":{"binary":"AB"}}"#),
    .items(
      "item-too-large",
      #"{"a":{"string":"\#(String(repeating: "v", count: (1 << 20) + 1))"}}"#),
    BrokenRule("plaintext-empty") { $0.plaintext = "" },
    BrokenRule("plaintext-with-bytes-after-its-end") { $0.plaintext += " " },
    BrokenRule("plaintext-member-unknown") {
      $0.plaintext = $0.plaintext.dropLast() + ",\"x\":0}"
    },
    .changing(
      "generation-too-large", in: \.plaintext, #"generation":1"#,
      to: #"generation":9007199254740992"#),
    .changing("password-set-before-1970", in: \.plaintext, #"SetAt":0"#, to: #"SetAt":-1"#),
    .changing("data-keys-missing", in: \.plaintext, #""dataKeys":"DATAKEYS","#, to: ""),
  ]
}
