internal import AccessControl
internal import ApplicationStore
internal import StrictJSON

extension PubNubExchange {
  /// Reads or changes channel groups; a change is on the disk when the answer is sent.
  func groups(_ call: GroupCall) throws(PubNubRefusal) {
    let application = caller.application.id
    switch call {
    case .list:
      guard isAllowed(.listGroups, groups: [.all]) else { return }
      let names = home.directory.groups(of: application).map(\.text).sorted()
      answer(.groups(["namespace": "", "groups": .array(names.map { .string($0) })]))
    case .channels(let group):
      guard isAllowed(.listGroupChannels, groups: [group]) else { return }
      let names = home.directory.channels(of: group, of: application).map(\.text).sorted()
      answer(
        .groups(["channels": .array(names.map { .string($0) }), "group": .string(group.text)]))
    case .add(let channels, let group):
      guard isAllowed(.addToGroup, groups: [group]) else { return }
      // Who reads the group then reads them: what everyone has must not reach them by this way either.
      guard isAllowed(.subscribe, channels: channels.filter(\.needsAuthority)) else { return }
      change { try await $0.add(channels, to: group, of: application) }
    case .remove(let channels, let group):
      guard isAllowed(.removeFromGroup, groups: [group]) else { return }
      change { try await $0.remove(channels, from: group, of: application) }
    case .removeGroup(let group):
      guard isAllowed(.removeGroup, groups: [group]) else { return }
      change { try await $0.removeGroup(group, of: application) }
    }
  }

  /// Makes a change and lets this server know of it before the answer.
  private func change(
    _ body: @escaping @Sendable (ApplicationStore) async throws -> Void
  ) {
    run { [home] in
      try await body(home.store)
      try await home.refresh()
      return .groups()
    }
  }
}
