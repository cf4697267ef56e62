@testable import AccessControl
@testable import ApplicationStore
import Foundation
import TestSupport
import Testing

/// A directory that is refreshed after random changes by two stores has what a fresh load has.
@Suite struct IncrementalRefreshTests {
  @Test(arguments: [1, 2, 3] as [UInt64])
  func `incremental refreshes equal a full load after random changes of two processes`(
    seed: UInt64
  ) async throws {
    let fixture = try await StoreFixture()
    let limit = { (limits: inout ApplicationLimits) in limits.changeCount = 25 }
    let stores = [try await fixture.store(limit), try await fixture.neighbour(limit)]
    let directory = try await ApplicationDirectory.load(stores[0])
    var random = SeededRandom(seed: seed)
    var named = DirectoryChanges()
    for round in 0..<150 {
      let before = directory.snapshot()
      for _ in 0..<(random.oneIn(10) ? 12 : 1 + random.next(3)) {
        try await change(stores[random.next(2)], &random, fixture.now)
      }
      if random.oneIn(3) { fixture.now += Double(random.next(90)) }
      let changes = try await directory.refresh()
      named.access.formUnion(changes.access)
      named.groups.formUnion(changes.groups)
      named.webhooks.formUnion(changes.webhooks)
      let after = directory.snapshot()
      let fresh = try await ApplicationDirectory.load(stores[1]).snapshot()
      let (isFresh, isSame) = (after == fresh, after.concerns == before.concerns)
      try #require(isFresh, "round \(round)")
      #expect(isSame || !changes.isEmpty, "round \(round)")
    }
    #expect(try await fixture.wrongCounts() == 0)
    #expect(named.access.count > 10 && named.groups.count > 3 && !named.webhooks.isEmpty)
  }

  private func change(
    _ store: ApplicationStore, _ random: inout SeededRandom, _ now: Date
  ) async throws {
    let all = try await store.applications()
    guard let id = all.isEmpty ? nil : all[random.next(all.count)].id else {
      _ = try await store.addApplication("first")
      return
    }
    let channels = (0...random.next(3)).map { _ in channel("c\(random.next(4))") }
    let group = group("g\(random.next(3))")
    switch random.next(20) {
    case 0 where all.count > 1: try await store.removeApplication(id)
    case 1 where all.count < 4: _ = try await store.addApplication("a\(random.next())")
    case 2: try await store.setOpen(random.oneIn(2), of: id)
    case 3...4: try await store.add(channels, to: group, of: id)
    case 5: try await store.remove(channels, from: group, of: id)
    case 6: try await store.removeGroup(group, of: id)
    case 7:
      try await store.revoke(
        digest(UInt8(random.next(9))), of: id, until: now + Double(random.next(300)))
    case 8:
      try await store.put(
        webhook: WebhookURL("https://a/\(random.next(3))"), events: [.channelOccupied], of: id)
    case 9:
      guard let webhook = try await store.webhooks(of: id).first else { return }
      try await store.removeWebhook(webhook.id, of: id)
    default:
      try await store.put(
        channels.map { name in
          grant(
            Rights(rawValue: UInt16(random.next(4))), on: .channel(name),
            for: random.oneIn(2) ? .everyone : store.holder("k\(random.next(3))", of: id),
            minutes: random.next(4), from: now, of: id)
        })
    }
  }
}

/// All that a directory has, for a comparison.
private struct Snapshot: Equatable {
  var records: [ApplicationRecord] = []
  var isOpen: [Bool] = []
  var grants: Set<Grant> = []
  var grantCount = 0
  var revocations: [ApplicationID: [TokenDigest: Date]] = [:]
  var groups: [ApplicationID: [GroupName: Set<ChannelName>]] = [:]
  var webhooks: [ApplicationID: [WebhookRecord]] = [:]

  /// What must not change without a word: all but the start of a grant for ever, and the revocation
  /// of a token that has ended.
  var concerns: Snapshot {
    var concerns = self
    concerns.grants = Set(
      grants.map { grant in
        ApplicationStoreTests.grant(
          grant.rights, on: grant.key.scope, for: grant.key.holder, minutes: grant.minutes,
          from: grant.minutes == 0 ? start : grant.start, of: grant.key.application)
      })
    concerns.revocations = [:]
    return concerns
  }
}

extension ApplicationDirectory {
  fileprivate func snapshot() -> Snapshot {
    var snapshot = Snapshot()
    snapshot.webhooks = webhooks
    for entry in applications {
      let id = entry.record.id
      snapshot.records.append(entry.record)
      snapshot.isOpen.append(entry.application.isOpen)
      for group in groups(of: id) {
        snapshot.groups[id, default: [:]][group] = channels(of: group, of: id)
      }
    }
    return withIndex { [snapshot] index in
      var snapshot = snapshot
      snapshot.grantCount = index.grantCount
      for (id, entry) in index.entries {
        snapshot.grants.formUnion(index.grants(of: id))
        snapshot.revocations[id] = entry.revocations
      }
      return snapshot
    }
  }
}
