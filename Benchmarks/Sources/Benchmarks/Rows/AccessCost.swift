import AccessControl
import Foundation
import VaultCrypto

/// The processor time of one decision of access beside 100,000 grants, and of loading them.
enum AccessCost {
  static let name = "decision of access, 100,000 grants"
  private static let grantCount = 100_000
  private static let questionCount = 200_000

  static func measure(rounds: Int) throws -> [ResultRow] {
    let applicationID = try ApplicationID(1)
    let application = try Application(
      id: applicationID, name: "benchmark", publishKey: "pub", subscribeKey: "sub",
      secretKey: SecretKey(.random(byteCount: 32)))
    let now = Date()
    let grants = try makeGrants(of: applicationID, start: now)
    var index = AccessIndex()
    var loading: [Double] = []
    for _ in 0...rounds {
      let cost = Cost.of {
        index = AccessIndex()
        index.put(application)
        for grant in grants { index.put(grant) }
      }
      loading.append(cost.processorSeconds)
    }
    guard index.grantCount == grantCount else { throw BenchmarkError("grants are missing") }

    let questions = try (0..<grantCount).map { number in
      // A step that has no factor in common with the count: neighbours are far apart in the index.
      try question(about: grants[number * 7919 % grantCount], isOwn: number % 4 != 0)
    }
    var deciding: [Double] = []
    for _ in 0...rounds {
      var allowedCount = 0
      let cost = Cost.of {
        for number in 0..<questionCount {
          let question = questions[number % grantCount]
          let decision = index.decide(question.principal, .subscribe, question.resource, at: now)
          if decision.isAllowed { allowedCount += 1 }
        }
      }
      guard allowedCount == questionCount * 3 / 4 else { throw BenchmarkError("a wrong decision") }
      deciding.append(cost.processorSeconds / Double(questionCount))
    }
    // The first round fills the caches and does not count.
    return [
      ResultRow(
        name, Spread(deciding.dropFirst().map { $0 * 1e6 }), unit: "µs", goal: .atMost(1)),
      ResultRow(
        "... loading them", Spread(loading.dropFirst().map { $0 * 1000 }), unit: "ms",
        goal: .atMost(1000)),
    ]
  }

  /// One key in ten channels, as applications grant: 10,000 keys.
  private static func makeGrants(of application: ApplicationID, start: Date) throws -> [Grant] {
    let random = RandomSource.system
    var grants: [Grant] = []
    while grants.count < grantCount {
      guard let hash = AuthKeyHash(stored: random.bytes(count: AuthKeyHash.byteCount)) else {
        throw BenchmarkError("no hash")
      }
      for number in 0..<10 {
        let channel = try ChannelName("user-\(grants.count).channel-\(number)")
        let key = Grant.Key(.channel(channel), of: application, holder: .authKey(hash))
        grants.append(try Grant([.read, .write], on: key, minutes: 60 + number, start: start))
      }
    }
    return grants
  }

  /// A question with a name of its own, as a server has just read it from a request.
  private static func question(
    about grant: Grant, isOwn: Bool
  ) throws -> (principal: Principal, resource: Resource) {
    guard case .authKey(let hash) = grant.key.holder, case .channel(let name) = grant.key.scope
    else { throw BenchmarkError("a grant of another kind") }
    let copy = try ChannelName(String(decoding: Array(name.text.utf8), as: UTF8.self))
    return (
      isOwn ? .authKey(hash) : .anonymous, Resource(.channel(copy), of: grant.key.application)
    )
  }
}
