/// Rules of the plaintext's members other than items: policy, data keys and database keys.
extension BrokenRule {
  static let policies: [BrokenRule] = [
    policy("policy-minimum-length-too-large", #""minimumLength":8"#, #""minimumLength":1025"#),
    policy(
      "policy-unique-characters-too-many", #""minimumUniqueCharacters":0"#,
      #""minimumUniqueCharacters":257"#),
    policy("policy-expiration-too-far", #""expirationDays":0"#, #""expirationDays":36501"#),
    policy(
      "policy-lock-timeout-too-long", #""lockTimeoutSeconds":0"#,
      #""lockTimeoutSeconds":31536001"#),
    policy("policy-minimum-length-negative", #""minimumLength":8"#, #""minimumLength":-1"#),
    policy("policy-expiration-a-fraction", #""expirationDays":0"#, #""expirationDays":0.5"#),
    policy("policy-lock-timeout-null", #""lockTimeoutSeconds":0"#, #""lockTimeoutSeconds":null"#),
    policy("policy-digit-a-number", #""digit":false"#, #""digit":1"#),
    policy(
      "policy-standard-password-a-string", #""standardPassword":true"#,
      #""standardPassword":"true""#),
    policy("policy-member-repeated", #""digit":false"#, #""digit":false,"digit":true"#),
    policy("policy-member-missing", #","digit":false"#, ""),
    policy("policy-member-unknown", #""digit":false"#, #""digit":false,"emoji":true"#),
    policy(
      "policy-members-exchanged", #""digit":false,"upper":false"#,
      #""upper":false,"digit":false"#),
    BrokenRule("policy-null") { $0.policy = "null" },
  ]

  static let dataKeys: [BrokenRule] = [
    BrokenRule("data-keys-none") { $0.dataKeys = "" },
    BrokenRule("data-key-short") { $0.dataKeys = Base64.url(Array(1...31)) },
    BrokenRule("data-key-long") { $0.dataKeys = Base64.url(Array(1...33)) },
    BrokenRule("data-key-padded") { $0.dataKeys += "=" },
    BrokenRule("data-keys-too-many") {
      $0.dataKeys = Base64.url([UInt8](repeating: 0xDA, count: 4097 * 32))
    },
  ]

  private static let shortKey = #""\#(Base64.url(Array(1...31)))""#

  static let databaseKeys: [BrokenRule] = [
    databases("database-key-short", current: shortKey),
    databases("database-pending-key-short", pending: shortKey),
    databases("database-pending-key-a-number", pending: "0"),
    databases("database-anchor-without-commit", anchor: #"{"id":"AQIDBAUGBwgJCgsMDQ4PEA"}"#),
    databases(
      "database-anchor-of-fifteen-bytes", anchor: #"{"id":"AQIDBAUGBwgJCgsMDQ4P","commit":1}"#),
    databases(
      "database-anchor-commit-negative", anchor: #"{"id":"AQIDBAUGBwgJCgsMDQ4PEA","commit":-1}"#),
    .items(
      "items-nested-too-deep",
      #"{"a":{"string":\#(String(repeating: "[", count: 9))"#
        + String(repeating: "]", count: 9) + "}}"),
  ]

  private static func policy(_ name: String, _ old: String, _ new: String) -> BrokenRule {
    changing(name, in: \.policy, old, to: new)
  }

  private static func databases(
    _ name: String, current: String = #""\#(Base64.url(Array(1...32)))""#,
    pending: String = "null", anchor: String = "null"
  ) -> BrokenRule {
    BrokenRule(name) {
      $0.binding = #"{"database":"AQIDBAUGBwg","state":"bound"}"#
      $0.databases = #"{"current":\#(current),"pending":\#(pending),"anchor":\#(anchor)}"#
    }
  }
}
