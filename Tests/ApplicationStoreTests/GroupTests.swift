import AccessControl
@testable import ApplicationStore
import Testing

@Suite struct GroupTests {
  let fixture: StoreFixture
  let store: ApplicationStore
  let shop: ApplicationID

  init() async throws {
    fixture = try await StoreFixture()
    store = try await fixture.store {
      $0.groupCount = 2
      $0.groupChannelCount = 3
      $0.memberCount = 5
      $0.totalMemberCount = 6
    }
    shop = try await store.addApplication("shop").id
  }

  private func channels(_ names: String...) -> [ChannelName] { names.map(channel) }

  private func add(
    _ names: String..., to group: GroupName, of id: ApplicationID? = nil
  ) async -> ApplicationStoreError.Code? {
    await code { try await store.add(names.map(channel), to: group, of: id ?? shop) }
  }

  @Test func `a group has the channels that were added and not removed`() async throws {
    try await store.add(channels("a", "b"), to: group("g"), of: shop)
    try await store.add(channels("b", "a-pnpres"), to: group("g"), of: shop)
    try await store.remove(channels("a", "z"), from: group("g"), of: shop)
    #expect(
      try await store.groups(of: shop) == [group("g"): [channel("b"), channel("a-pnpres")]])
    #expect(try await fixture.wrongCounts() == 0)
  }

  @Test func `a group ends with its last channel, or when it is removed`() async throws {
    try await store.add(channels("a"), to: group("g"), of: shop)
    try await store.add(channels("a"), to: group("h"), of: shop)
    try await store.remove(channels("a"), from: group("g"), of: shop)
    try await store.removeGroup(group("h"), of: shop)
    try await store.removeGroup(group("h"), of: shop)
    #expect(try await store.groups(of: shop).isEmpty)
    #expect(try await fixture.wrongCounts() == 0)
  }

  @Test func `all groups, presence channels and patterns are refused as names`() async throws {
    #expect(await add("a", to: .all) == .reservedName)
    #expect(await add("a", to: group("g-pnpres")) == .reservedName)
    #expect(await add("a", "b.*", to: group("g")) == .reservedName)
    #expect(try await store.groups(of: shop).isEmpty)
  }

  @Test func `groups and their channels are limited, each with its code`() async throws {
    #expect(await add("a", "b", "c", "d", to: group("g")) == .tooManyChannels)
    try await store.add(channels("a", "b", "c"), to: group("g"), of: shop)
    #expect(await add("d", to: group("g")) == .tooManyChannels)
    #expect(await add("a", "b", "c", to: group("h")) == .tooManyChannels)
    try await store.add(channels("a"), to: group("h"), of: shop)
    #expect(await add("a", to: group("i")) == .tooManyGroups)
    // A channel that is in the group needs no room.
    #expect(await add("a", "b", "c", to: group("g")) == nil)
    let bank = try await store.addApplication("bank").id
    #expect(await add("a", "b", "c", to: group("g"), of: bank) == .tooManyChannels)
    #expect(await add("a", "b", to: group("g"), of: bank) == nil)
    #expect(try await fixture.wrongCounts() == 0)
  }
}
