import AccessControl
import Foundation
import Testing
import VaultCrypto

/// Users, roles, passwords, and what follows from wrong ones.
@Suite struct RealmTests {
  private let ana = made(try Name("ana"))
  private let bob = made(try Name("bob"))
  private let staff = made(try Name("staff"))

  private let realm = RealmHasher(
    key: SecretBytes(copying: [UInt8](repeating: 7, count: 32)), iterationCount: 10)

  private func password(_ text: String) -> Password {
    Password(SecretBytes(copying: Array(text.utf8)))
  }

  private func attempt(
    _ user: String = "ana", from source: String, in network: String? = nil
  ) -> LoginAttempt {
    made(try realm.attempt(by: Name(user), of: shop, from: source, in: network))
  }

  // MARK: - Roles

  @Test func `a user has the grants of each role, and of no other role`() {
    var index = access(
      grant(.write, on: channel("c"), for: .role(staff)),
      grant(.read, on: channel("c"), for: .user(staff)))
    index.put(user: ana, roles: [staff], of: shop)
    index.put(user: bob, roles: [], of: shop)
    #expect(index.reason(.user(ana), .publish, channel("c")) == .grantForRole(staff, .name))
    #expect(!index.allows(.user(ana), .subscribe, channel("c")))
    #expect(!index.allows(.user(bob), .publish, channel("c")))
    #expect(!index.allows(.publish, channel("c")))
  }

  @Test func `a user without a row is refused, in an open application too`() {
    var index = access(grant(.read, on: channel("c"), for: .user(ana)), isOpen: true)
    #expect(index.reason(.user(ana), .subscribe, channel("c")) == .unknownUser)
    index.put(user: ana, roles: [], of: shop)
    #expect(index.allows(.user(ana), .subscribe, channel("c")))
    index.removeUser(ana, of: shop)
    #expect(index.reason(.user(ana), .subscribe, channel("c")) == .unknownUser)
  }

  @Test func `a role reaches a private channel, as what everyone has does not`() {
    var index = access(
      grant(.read, on: .application), grant(.read, on: channel("private-c"), for: .role(staff)))
    index.put(user: ana, roles: [staff], of: shop)
    index.put(user: bob, roles: [], of: shop)
    #expect(index.allows(.user(ana), .subscribe, channel("private-c")))
    #expect(index.reason(.user(bob), .subscribe, channel("private-c")) == .needsAuthority)
  }

  @Test func `a change of a user concerns that user, and a change of a role all users`() {
    var index = access()
    let added = index.put(user: ana, roles: [], of: shop)
    #expect(added?.concerns(.user(ana), in: shop) == true)
    #expect(added?.concerns(.user(bob), in: shop) == false)
    #expect(index.put(user: ana, roles: [], of: shop) == nil)
    let role = index.put(grant(.read, on: channel("c"), for: .role(staff)))
    #expect(role?.concerns(.user(bob), in: shop) == true)
    #expect(role?.concerns(.user(bob), in: bank) == false)
    #expect(role?.concerns(.anonymous, in: shop) == false)
    #expect(index.removeUser(ana, of: shop)?.concerns(.user(ana), in: shop) == true)
    #expect(index.removeUser(ana, of: shop) == nil)
  }

  @Test func `a new password refuses who was checked by the old one, and concerns that user`()
    throws
  {
    var index = access(grant(.read, on: channel("c"), for: .user(ana)))
    let (old, new) = (
      try realm.verifier(for: password("old password"), user: ana, of: shop).version,
      try realm.verifier(for: password("old password"), user: ana, of: shop).version
    )
    let now = Date()
    index.put(user: ana, password: old, roles: [], of: shop)
    let checked = Principal.user(ana, password: old)
    #expect(index.allows(checked, .subscribe, channel("c")))
    #expect(index.refusal(of: checked, in: shop, at: now) == nil)
    #expect(index.put(user: ana, password: old, roles: [], of: shop) == nil)
    let change = index.put(user: ana, password: new, roles: [], of: shop)
    #expect(change?.concerns(checked, in: shop) == true)
    #expect(change?.concerns(.user(bob, password: old), in: shop) == false)
    #expect(index.reason(checked, .subscribe, channel("c")) == .passwordChanged)
    #expect(index.refusal(of: checked, in: shop, at: now) == .passwordChanged)
    // Without a check of a password, as explain asks, the user alone counts.
    #expect(index.allows(.user(ana), .subscribe, channel("c")))
    #expect(index.allows(.user(ana, password: new), .subscribe, channel("c")))
    index.removeUser(ana, of: shop)
    #expect(index.refusal(of: .user(ana), in: shop, at: now) == .unknownUser)
    #expect(index.refusal(of: checked, in: bank, at: now) == .unknownApplication)
  }

  // MARK: - Verifiers

  @Test func `a verifier that Python made fits its password, user and application alone`() throws {
    // hmac(bytes([7] * 32), b"\0" + id + pbkdf2_hmac("sha512", password, salt, 1000, 32) + b"ana")
    let verifier = try #require(
      PasswordVerifier(
        salt: Array(0..<16), iterationCount: 1000,
        code: bytes(
          "ad85a2fbb8872f5d12c138491b1c5559188d41a729f413a13e27a5ffc21c5da2")))
    let right = password("correct horse £")
    #expect(try realm.matches(right, verifier, user: ana, of: shop))
    #expect(try !realm.matches(right, verifier, user: bob, of: shop))
    #expect(try !realm.matches(right, verifier, user: ana, of: bank))
    #expect(try !realm.matches(password("correct horse"), verifier, user: ana, of: shop))
    let other = RealmHasher(
      key: SecretBytes(copying: [UInt8](repeating: 8, count: 32)), iterationCount: 10)
    #expect(try !other.matches(right, verifier, user: ana, of: shop))
  }

  @Test func `a user that does not exist matches no password`() throws {
    #expect(try !realm.matches(password("anything"), nil, user: ana, of: shop))
  }

  @Test func `each verifier has a salt of its own and the vault's iterations`() throws {
    let standard = RealmHasher(key: SecretBytes(copying: [UInt8](repeating: 7, count: 32)))
    let first = try standard.verifier(for: password("password"), user: ana, of: shop)
    #expect(first.iterationCount == 300_000)
    #expect(
      try realm.verifier(for: password("password"), user: ana, of: shop).salt
        != realm.verifier(for: password("password"), user: ana, of: shop).salt)
  }

  @Test(arguments: [
    "", "1234567", String(repeating: "x", count: 1025), "12345\n78", "1234567\u{7F}",
  ])
  func `a password that is too short or that no client can send is refused`(text: String) {
    let error = #expect(throws: AccessError.self) {
      _ = try realm.verifier(for: password(text), user: ana, of: shop)
    }
    #expect(error?.code == .invalidPassword)
    if text.count > 3 { #expect(error?.description.contains(text) == false) }
  }

  // MARK: - Back-off

  @Test func `a thousand wrong passwords lock no user out from another source`() {
    var ledger = LoginLedger()
    var checkCount = 0
    for number in 0..<1000 {
      let now = start.addingTimeInterval(Double(number))
      let wrong = attempt(from: "192.0.2.1")
      if ledger.begin(wrong, at: now) == .check {
        checkCount += 1
        ledger.end(wrong, succeeded: false)
      }
      let right = attempt(from: "192.0.2.2")
      #expect(ledger.begin(right, at: now) == .check)
      ledger.end(right, succeeded: true)
    }
    // 3 without a wait, then after 1, 2, 4, ... 300 seconds.
    #expect(checkCount == 13, "\(checkCount)")
  }

  @Test func `a source that guesses for many users waits`() {
    var ledger = LoginLedger()
    let verdicts = (0..<20).map { number in
      let guess = attempt("user\(number)", from: "192.0.2.1")
      let verdict = ledger.begin(guess, at: start)
      if verdict == .check { ledger.end(guess, succeeded: false) }
      return verdict
    }
    #expect(verdicts.count { $0 == .check } == 10)
    #expect(verdicts.last == .wait(seconds: 1))
  }

  @Test func `one right password does not clear the guesses at others`() {
    var ledger = LoginLedger()
    for number in 0..<10 {
      let guess = attempt("user\(number)", from: "192.0.2.1")
      if ledger.begin(guess, at: start) == .check { ledger.end(guess, succeeded: false) }
      let own = attempt("mallory", from: "192.0.2.1")
      if ledger.begin(own, at: start) == .check { ledger.end(own, succeeded: true) }
    }
    #expect(ledger.begin(attempt("ana", from: "192.0.2.1"), at: start) == .wait(seconds: 1))
  }

  @Test func `sources that fail for one user wait longer the more of them fail`() {
    var ledger = LoginLedger()
    for number in 0..<15 {
      let guess = attempt(from: "192.0.2.\(number)")
      #expect(ledger.begin(guess, at: start) == .check)
      ledger.end(guess, succeeded: false)
    }
    #expect(ledger.begin(attempt(from: "192.0.2.1"), at: start) == .wait(seconds: 30))
    #expect(ledger.begin(attempt(from: "192.0.2.99"), at: start) == .check)
  }

  @Test func `attempts at the same time count before they end`() {
    var ledger = LoginLedger()
    let verdicts = (0..<6).map { _ in ledger.begin(attempt(from: "192.0.2.1"), at: start) }
    #expect(verdicts.prefix(3).allSatisfy { $0 == .check })
    #expect(verdicts.dropFirst(3).allSatisfy { $0 == .wait(seconds: 1) })
  }

  @Test func `one source cannot fill the queue`() {
    var ledger = LoginLedger()
    let verdicts = (0..<9).map { ledger.begin(attempt("u\($0)", from: "192.0.2.1"), at: start) }
    #expect(verdicts.count { $0 == .check } == 4)
    #expect(verdicts.last == .busy)
    #expect(ledger.begin(attempt(from: "192.0.2.2"), at: start) == .check)
    for number in 0..<100 { _ = ledger.begin(attempt(from: "198.51.100.\(number)"), at: start) }
    #expect(ledger.begin(attempt(from: "192.0.2.3"), at: start) == .busy)
    ledger.end(attempt("u0", from: "192.0.2.1"), succeeded: false)
    #expect(ledger.begin(attempt(from: "192.0.2.3"), at: start) == .check)
  }

  @Test func `a user who is known at a source has a place there, whatever strangers do`() {
    var ledger = LoginLedger()
    let own = attempt(from: "192.0.2.1")
    #expect(ledger.begin(own, at: start) == .check)
    ledger.end(own, succeeded: true)
    // Strangers behind the same proxy, and at other addresses: one fails for all users, the others fill the places.
    for number in 0..<20 {
      let guess = attempt("user\(number)", from: "192.0.2.1")
      if ledger.begin(guess, at: start) == .check { ledger.end(guess, succeeded: false) }
    }
    for number in 0..<100 {
      _ = ledger.begin(attempt("user\(number)", from: "198.51.100.\(number)"), at: start)
    }
    #expect(ledger.begin(attempt("bob", from: "203.0.113.1"), at: start) == .busy)
    #expect(ledger.begin(attempt("bob", from: "192.0.2.1"), at: start) == .wait(seconds: 1))
    #expect(ledger.isKnown(own, at: start))
    #expect(ledger.begin(own, at: start) == .check)
    // Their own failures make known users wait too.
    ledger.end(own, succeeded: false)
    for _ in 0..<2 {
      #expect(ledger.begin(own, at: start) == .check)
      ledger.end(own, succeeded: false)
    }
    #expect(ledger.begin(own, at: start) == .wait(seconds: 1))
    #expect(!ledger.isKnown(own, at: start + 31 * 86_400))
  }

  @Test func `the places of known users are bounded, and each one is returned`() {
    var ledger = LoginLedger()
    let users = (0..<40).map { attempt("user\($0)", from: "192.0.2.\($0)") }
    for _ in 0..<3 {
      for user in users {
        #expect(ledger.begin(user, at: start) == .check)
        ledger.end(user, succeeded: true)
      }
      let verdicts = users.map { ledger.begin($0, at: start) }
      #expect(verdicts.count { $0 == .check } == 16)
      for (user, verdict) in zip(users, verdicts) where verdict == .check {
        ledger.end(user, succeeded: true)
      }
    }
  }

  @Test func `one network cannot fill the queue with its many addresses`() {
    var ledger = LoginLedger()
    let verdicts = (0..<30).map {
      ledger.begin(attempt("u\($0)", from: "address \($0)", in: "one network"), at: start)
    }
    #expect(verdicts.count { $0 == .check } == 8)
    #expect(ledger.begin(attempt(from: "192.0.2.1"), at: start) == .check)
    ledger.end(attempt("u0", from: "address 0", in: "one network"), succeeded: false)
    #expect(ledger.begin(attempt("u", from: "address", in: "one network"), at: start) == .check)
  }

  @Test func `the number of users that are known is bounded`() {
    var limits = LoginLedger.Limits()
    limits.subjectCount = 100
    var ledger = LoginLedger(limits: limits)
    let users = (0..<300).map { attempt("u\($0)", from: "192.0.2.1") }
    for (number, user) in users.enumerated() {
      let now = start.addingTimeInterval(Double(number))
      #expect(ledger.begin(user, at: now) == .check)
      ledger.end(user, succeeded: true)
    }
    let end = start.addingTimeInterval(300)
    #expect(users.count { ledger.isKnown($0, at: end) } <= 100)
    #expect(ledger.isKnown(users[299], at: end))
  }

  @Test func `counts are forgotten after an hour, and a clock that goes back makes no long wait`() {
    var ledger = LoginLedger()
    for number in 0..<40 {
      let guess = attempt(from: "192.0.2.1")
      if ledger.begin(guess, at: start.addingTimeInterval(Double(number) * 100)) == .check {
        ledger.end(guess, succeeded: false)
      }
    }
    let last = start.addingTimeInterval(3900)
    guard
      case .wait(let seconds) = ledger.begin(
        attempt(from: "192.0.2.1"), at: start.addingTimeInterval(-1_000_000))
    else {
      Issue.record("no wait")
      return
    }
    #expect(seconds <= 300)
    #expect(ledger.begin(attempt(from: "192.0.2.1"), at: last + 3700) == .check)
  }

  @Test func `counts survive in a table, and their number is bounded`() {
    var ledger = LoginLedger()
    for _ in 0..<3 {
      _ = ledger.begin(attempt(from: "192.0.2.1"), at: start)
      ledger.end(attempt(from: "192.0.2.1"), succeeded: false)
    }
    let (stored, removed) = ledger.takeUnsaved()
    #expect(stored.count == 3 && removed.isEmpty)
    #expect(stored.allSatisfy { $0.failureCount == 3 && $0.subject.bytes.count == 32 })
    #expect(ledger.takeUnsaved().stored.isEmpty)
    var next = LoginLedger(stored)
    #expect(next.begin(attempt(from: "192.0.2.1"), at: start) == .wait(seconds: 1))
    var limits = LoginLedger.Limits()
    limits.subjectCount = 100
    var small = LoginLedger(limits: limits)
    for number in 0..<500 {
      let guess = attempt("u\(number)", from: "192.0.\(number % 250).1")
      _ = small.begin(guess, at: start.addingTimeInterval(Double(number)))
      small.end(guess, succeeded: false)
      #expect(small.count <= 100)
    }
  }

  // MARK: - Cache

  @Test func `a right password is cached for a minute at its source alone`() throws {
    var cache = LoginCache()
    let right = password("password")
    let verifier = try realm.verifier(for: right, user: ana, of: shop)
    let here = attempt(from: "192.0.2.1")
    let entry = try cache.entry(right, verifier, here)
    let answer1 = cache.confirms(entry, at: start)
    #expect(!answer1)
    cache.put(entry, at: start)
    let answer2 = cache.confirms(entry, at: start + 59)
    #expect(answer2)
    let elsewhere = try cache.entry(right, verifier, attempt(from: "192.0.2.2"))
    let answer3 = cache.confirms(elsewhere, at: start)
    #expect(!answer3)
    let answer4 = cache.confirms(entry, at: start + 60)
    #expect(!answer4)
  }

  @Test func `a changed password has no entry, and a wrong one removes it`() throws {
    var cache = LoginCache()
    let right = password("password")
    let here = attempt(from: "192.0.2.1")
    let old = try realm.verifier(for: right, user: ana, of: shop)
    let entry = try cache.entry(right, old, here)
    cache.put(entry, at: start)
    let new = try realm.verifier(for: right, user: ana, of: shop)
    let renewed = try cache.entry(right, new, here)
    let answer5 = cache.confirms(renewed, at: start)
    #expect(!answer5)
    cache.put(entry, at: start)
    let wrong = try cache.entry(password("passw0rd"), old, here)
    let answer6 = cache.confirms(wrong, at: start)
    #expect(!answer6)
    // Otherwise it would answer guesses without a wait.
    let answer7 = cache.confirms(entry, at: start)
    #expect(!answer7)
  }

  private func bytes(_ hexadecimal: String) -> [UInt8] {
    stride(from: 0, to: hexadecimal.utf8.count, by: 2).map { offset in
      let index = hexadecimal.index(hexadecimal.startIndex, offsetBy: offset)
      return UInt8(hexadecimal[index...].prefix(2), radix: 16) ?? 0
    }
  }
}
