import Foundation
import TestSupport
import Testing

@Suite struct PolicyCommandTests {
  private let home: TestHome

  init() throws {
    home = try TestHome.fresh()
    try home.createVault()
  }

  private func putRecord(_ failureCount: Int, waitingSeconds: Int) throws {
    let retryAt = Int(Date().timeIntervalSince1970 * 1000) + waitingSeconds * 1000
    let record = #"{"version":1,"failures":\#(failureCount),"retryAt":\#(retryAt),"openedAt":null}"#
    try Data("\(record)\n".utf8).write(to: URL(fileURLWithPath: home.path + "/vaults/v.retry"))
  }

  @Test func `policy set changes each rule, and policy show reports it`() throws {
    #expect(
      try home.unlocked("policy", "show", "v", "--json").text == """
        {"digit":false,"expirationDays":0,"lockTimeoutSeconds":0,"lower":false,"minimumLength":8,\
        "minimumUniqueCharacters":0,"retryLimit":0,"special":false,"standardPassword":true,\
        "upper":false}\n
        """)
    let changed = try home.unlocked(
      "policy", "set", "v", "--no-standard-password", "--minimum-length", "9",
      "--minimum-unique-characters", "5", "--no-digit", "--lower", "--special",
      "--expiration-days", "90", "--lock-timeout", "15m", "--retry-limit", "20")
    #expect(changed.expect(0).output.isEmpty)
    #expect(
      try home.unlocked("policy", "show", "v", "--json").text == """
        {"digit":false,"expirationDays":90,"lockTimeoutSeconds":900,"lower":true,"minimumLength":9,\
        "minimumUniqueCharacters":5,"retryLimit":20,"special":true,"standardPassword":false,\
        "upper":false}\n
        """)
    try home.unlocked("policy", "show", "v").expect(
      0, prints: "standard password   not allowed\n", "lock timeout        900 s\n")
    #expect(try home.run("status", "v").text.contains("deletion   after more than 20 wrong"))
    #expect(try home.unlocked("policy", "set", "v", "--no-lower").status == 0)
    #expect(try home.unlocked("policy", "show", "v", "--json").text.contains(#""lower":false"#))
  }

  @Test(arguments: [
    [], ["--lock-timeout", "500ms"], ["--minimum-length", "1025"], ["--minimum-length", "-1"],
  ])
  func `policy set without a rule or with an invalid number ends with 64`(rule: [String]) throws {
    #expect(try home.unlocked(["policy", "set", "v"] + rule, input: []).status == 64)
  }

  @Test(arguments: [
    ("--lock-timeout", "366d", "from 0s to 365d"), ("--retry-limit", "1001", "from 0 to 1000"),
    ("--minimum-length", "1025", "from 0 to 1024"),
    ("--minimum-unique-characters", "257", "from 0 to 256"),
    ("--expiration-days", "36501", "from 0 to 36500"),
  ])
  func `a number that is out of range is named by its option, with the range`(
    option: String, value: String, range: String
  ) throws {
    try Tool.run(["policy", "set", "v", option, value])
      .expect(64, says: "\(option) must be \(range)")
  }

  @Test func `a password that breaks a rule ends with 78, and can still be changed`() throws {
    #expect(try home.unlocked("policy", "set", "v", "--digit").status == 0)
    try home.unlocked("items", "v")
      .expect(78, says: "requires a digit", "hint: run `datavault change-password`")
    try home.unlocked("change-password", "v", "--new-password-file", home.wrongFile).expect(78)
    let better = try home.folder.file("better", Array("correct horse 2".utf8))
    #expect(try home.unlocked("change-password", "v", "--new-password-file", better).status == 0)
    #expect(try home.run("items", "v", "--password-file", better).status == 0)
  }

  @Test func `create and secure refuse a password that is too short`() throws {
    let home = try TestHome.fresh()
    let short = try home.folder.file("short", Array("1234567\n".utf8))
    #expect(try home.run("create", "v", "--new-password-file", short).status == 78)
    #expect(try home.run("secure", "--new-password-file", short).status == 78)
    #expect(try home.contents().isEmpty)
  }

  @Test func `a vault that waits after wrong passwords refuses the right password with 75`() throws
  {
    try putRecord(9, waitingSeconds: 60)
    try home.unlocked("items", "v").expect(75, says: "hint: try again in ")
    let status = try home.run("status", "v").text
    #expect(status.contains("failures   9 since then: no attempt is taken for "))
    try putRecord(9, waitingSeconds: -1)
    #expect(try home.unlocked("items", "v").status == 0)
  }

  @Test func `status shows failed attempts and the last opening`() throws {
    #expect(try home.run("status", "v").text.contains("opened     not known\nfailures   0"))
    #expect(try home.run("items", "v", "--password-file", home.wrongFile).status == 77)
    #expect(try home.run("status", "v", "--json").text.contains(#""failedAttempts":1"#))
    #expect(try home.unlocked("items", "v").status == 0)
    let year = Calendar(identifier: .gregorian).component(.year, from: Date())
    try home.run("status", "v", "--json")
      .expect(0, prints: #""failedAttempts":0"#, #""lastOpening":"\#(year)-"#)
  }

  @Test func `a wrong password beyond the retry limit deletes the vault`() throws {
    #expect(try home.unlocked("policy", "set", "v", "--retry-limit", "1").status == 0)
    #expect(try home.run("items", "v", "--password-file", home.wrongFile).status == 77)
    try home.run("items", "v", "--password-file", home.wrongFile).expect(78, says: "was deleted")
    #expect(try home.unlocked("items", "v").status == 66)
  }
}
