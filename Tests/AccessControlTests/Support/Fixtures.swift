import AccessControl
import Foundation
import TestSupport
import VaultCrypto

/// The value of a fixture, which must be valid.
func made<Value>(_ value: @autoclosure () throws -> Value) -> Value {
  do { return try value() } catch { preconditionFailure("a fixture is not valid: \(error)") }
}

/// A moment with whole seconds: Tue, 14 Nov 2023 22:13:20 UTC.
let start = Date(timeIntervalSince1970: 1_700_000_000)

/// A number of minutes after ``start``.
func minute(_ minutes: Double) -> Date { start.addingTimeInterval(minutes * 60) }

let shop = made(try ApplicationID(1042))
let bank = made(try ApplicationID(2))

/// An application with keys made of its name.
func application(
  _ id: ApplicationID = shop, name: String = "shop", isOpen: Bool = false
) -> Application {
  made(
    try Application(
      id: id, name: name, publishKey: "pub-c-\(name)", subscribeKey: "sub-c-\(name)",
      secretKey: SecretKey(secret("sec-c-\(name)")), isOpen: isOpen))
}

let hasher = AuthKeyHasher(key: SecretBytes(copying: [UInt8](repeating: 7, count: 32)))

func hash(_ authKey: String, of application: ApplicationID = shop) -> AuthKeyHash {
  made(try hasher.hash(Array(authKey.utf8), of: application))
}

func channel(_ name: String) -> Scope { .channel(made(try ChannelName(name))) }
func group(_ name: String) -> Scope { .group(made(try GroupName(name))) }

func consumer(_ name: String, of channel: String) -> Scope {
  .consumer(made(try Name(name)), of: made(try ChannelName(channel)))
}

func grant(
  _ rights: Rights, on scope: Scope, for holder: GrantHolder = .everyone, minutes: Int = 0,
  from start: Date = start, of application: ApplicationID = shop
) -> Grant {
  made(
    try Grant(
      rights, on: Grant.Key(scope, of: application, holder: holder), minutes: minutes, start: start)
  )
}

/// An index with one closed application and these grants.
func access(_ grants: Grant..., isOpen: Bool = false) -> AccessIndex {
  var index = AccessIndex()
  index.put(application(isOpen: isOpen))
  for grant in grants { index.put(grant) }
  return index
}

extension AccessIndex {
  func allows(
    _ principal: Principal, _ operation: AccessOperation, _ scope: Scope, at now: Date = start
  ) -> Bool {
    decide(principal, operation, Resource(scope, of: shop), at: now).isAllowed
  }

  func allows(_ operation: AccessOperation, _ scope: Scope, at now: Date = start) -> Bool {
    allows(.anonymous, operation, scope, at: now)
  }

  func reason(
    _ principal: Principal, _ operation: AccessOperation, _ scope: Scope, at now: Date = start
  ) -> Decision.Reason {
    decide(principal, operation, Resource(scope, of: shop), at: now).reason
  }

  func reason(
    _ operation: AccessOperation, _ scope: Scope, at now: Date = start
  ) -> Decision.Reason {
    reason(.anonymous, operation, scope, at: now)
  }
}

func token(
  _ resources: TokenRights = TokenRights(), patterns: TokenRights = TokenRights(),
  minutes: Int = 60, authorizedUserID: String? = nil, of application: Application = application()
) throws -> Token {
  let signer = try TokenSigner(application)
  let contents = try TokenContents(
    issue: start, minutes: minutes, resources: resources, patterns: patterns,
    authorizedUserID: authorizedUserID)
  guard case .token(let token) = try signer.read(Array(try signer.issue(contents).utf8)) else {
    throw FixtureError()
  }
  return token
}

/// A fixture that did not come out as meant.
struct FixtureError: Error {}
