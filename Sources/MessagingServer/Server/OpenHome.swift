internal import AccessControl
internal import ApplicationStore
internal import FileLayer
internal import Foundation
internal import Logging
internal import MessagingQueue
internal import Realtime
internal import Synchronization

/// What a server has while its vault is open; it is dropped when the vault is locked.
final class OpenHome: Sendable {
  let engine: MessagingEngine
  let realtime: Realtime
  let store: ApplicationStore
  let directory: ApplicationDirectory
  let presence: PresenceService
  let polls = PollRegistry()
  let pusher: PusherHub
  let pusherBroadcast = PusherBroadcast()
  let pusherSessions = SessionRegistry<PusherConnection>()
  let stompSessions = SessionRegistry<STOMPConnection>()
  let leases: LeaseService
  let webhooks: WebhookService
  /// The events of clients for other clients.
  let signals: SignalQueue
  let quotas = ApplicationQuotas()
  let logins: LoginGate
  let operations: ServerOperations
  let now: @Sendable () -> Date

  init(
    engine: MessagingEngine, realtime: Realtime, store: ApplicationStore,
    directory: ApplicationDirectory, logins: LoginGate, operations: ServerOperations,
    webhooks client: WebhookClient, now: @escaping @Sendable () -> Date
  ) {
    self.engine = engine
    self.realtime = realtime
    self.store = store
    self.directory = directory
    self.logins = logins
    self.operations = operations
    self.now = now
    presence = PresenceService(realtime, now: now)
    signals = SignalQueue(realtime)
    leases = LeaseService(engine)
    webhooks = WebhookService(engine, leases, directory, store, client, operations, now: now)
    pusher = PusherHub { [webhooks] in webhooks.note($0, of: $1) }
  }

  /// The greater of the clock and the end of the log: what `/time` answers.
  var place: Timetoken { max(Timetoken(now()), realtime.place) }

  /// Whether a caller can do an operation on all of these names.
  func check(
    _ caller: PubNubCaller, _ operation: AccessOperation, channels: [ChannelName] = [],
    groups: [GroupName] = []
  ) -> RefusedNames {
    let now = now()
    var refused = RefusedNames()
    for channel in channels {
      refused.add(decide(caller, operation, .channel(channel), now), channel)
    }
    for group in groups { refused.add(decide(caller, operation, .group(group), now), group) }
    return refused
  }

  func decide(
    _ caller: PubNubCaller, _ operation: AccessOperation, _ scope: Scope, _ now: Date
  ) -> Decision {
    guard let principal = caller.principal else { return .refused(.otherApplication) }
    let decision = directory.decide(
      principal, operation, Resource(scope, of: caller.application.id), at: now)
    return decision.isAllowed && caller.isOtherUser ? .refused(.otherUser) : decision
  }
}

extension OpenHome {
  /// Distributes messages and follows changes of access, until the engine stops or the task is cancelled.
  ///
  /// - Throws: the error of reading the log or the tables.
  func run() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await self.realtime.run() }
      group.addTask { try await self.presence.run() }
      group.addTask { try await self.signals.run() }
      group.addTask { try await self.leases.run() }
      group.addTask { try await self.webhooks.run() }
      group.addTask { try await self.followChanges() }
      group.addTask { try await self.sweep() }
      group.addTask { try await self.saveLogins() }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  /// Reads what other processes have changed, and ends what has lost its right, within a second.
  private func followChanges() async throws {
    while !Task.isCancelled {
      let changes = try await refresh()
      if !changes.isEmpty {
        operations.didTakeChanges(count: changes.count)
      }
      presence.expire()
      try? await Task.sleep(for: .milliseconds(500))
    }
  }

  /// Saves failed logins, so that a restart does not end the waits.
  private func saveLogins() async throws {
    while !Task.isCancelled {
      try? await Task.sleep(for: .seconds(1))
      do {
        try await logins.save(to: store)
      } catch {
        guard engine.refusal() == nil else { throw error }
        engine.configuration.logger.debug("saving failed logins: \(error)")
      }
    }
  }

  /// Removes old messages, and grants that have ended, from time to time.
  private func sweep() async throws {
    while !Task.isCancelled {
      do {
        try await quotas.sweep(directory.applications, in: engine, at: now())
        if engine.sweeps { try await store.removeEnded() }
      } catch {
        // For example a full disk or a busy database. The next round continues.
        guard engine.refusal() == nil else { throw error }
        engine.configuration.logger.debug("the sweep of applications: \(error)")
      }
      try? await Task.sleep(for: engine.configuration.maintenanceInterval)
    }
  }

  /// Takes the changes of access since the last call.
  @discardableResult
  func refresh() async throws -> DirectoryChanges {
    let changes = try await directory.refresh()
    if !changes.webhooks.isEmpty { webhooks.takeChanges() }
    recheckPolls(changes.access, groups: changes.groups)
    for handle in pusherSessions.handles(concernedBy: changes.access, at: now()) {
      handle.tell { $0.recheck(changes.access) }
    }
    for handle in stompSessions.handles(concernedBy: changes.access, at: now()) {
      handle.tell { $0.recheck(changes.access) }
    }
    return changes
  }

  /// Ends the connections.
  ///
  /// Requests on their way still find what the home has: a directory that suddenly knew no grants would refuse them, and
  /// clients that are refused give up. The last of them releases the home, with its keys.
  ///
  /// - Parameter isStopping: whether the server stops; otherwise its vault was locked.
  func close(isStopping: Bool) {
    pusherSessions.close { $0.end(isStopping ? .stopping : .sealed) }
    leases.close()
    stompSessions.close { $0.end(isStopping ? .stopping : .sealed) }
    signals.finish()
    presence.finish()
  }
}
