import MessagingQueue
import Testing

@Suite struct EngineStateMachineTests {
  private static let refused = EngineState.refused(.vaultLocked)

  /// One row: the events that lead to a state, an event there, the action, and the next state.
  typealias Row = (
    path: [EngineStateMachine.Event], event: EngineStateMachine.Event,
    action: EngineStateMachine.Action, state: EngineState
  )

  static let rows: [Row] = [
    ([], .start, .open, .starting),
    ([], .opened, .nothing, .stopped),
    ([], .failed(.busy), .nothing, .stopped),
    ([], .stop, .nothing, .stopped),
    ([], .forcedStop(.vaultLocked), .nothing, .stopped),
    ([], .closed, .nothing, .stopped),

    ([.start], .start, .nothing, .starting),
    ([.start], .opened, .nothing, .running),
    ([.start], .failed(.keyMissing), .announceEnd, .refused(.keyMissing)),
    ([.start], .stop, .abandonOpening, .stopping),
    ([.start], .forcedStop(.vaultLocked), .abandonOpening, .stopping),
    ([.start], .closed, .nothing, .starting),

    ([.start, .opened], .start, .nothing, .running),
    ([.start, .opened], .opened, .nothing, .running),
    ([.start, .opened], .failed(.busy), .nothing, .running),
    ([.start, .opened], .stop, .closeDown, .stopping),
    ([.start, .opened], .forcedStop(.vaultLocked), .closeDown, .stopping),
    ([.start, .opened], .closed, .nothing, .running),

    ([.start, .opened, .stop], .start, .nothing, .stopping),
    ([.start, .opened, .stop], .stop, .awaitEnd, .stopping),
    ([.start, .opened, .stop], .forcedStop(.vaultLocked), .nothing, .stopping),
    ([.start, .opened, .stop], .closed, .announceEnd, .stopped),
    ([.start, .opened, .forcedStop(.vaultLocked)], .stop, .awaitEnd, .stopping),
    ([.start, .opened, .forcedStop(.vaultLocked)], .closed, .announceEnd, refused),
    ([.start, .stop], .opened, .closeDown, .stopping),
    ([.start, .stop], .failed(.busy), .announceEnd, .stopped),
    ([.start, .forcedStop(.vaultLocked)], .opened, .closeDown, .stopping),
    ([.start, .forcedStop(.vaultLocked)], .failed(.busy), .announceEnd, refused),

    ([.start, .failed(.busy)], .start, .open, .starting),
    ([.start, .failed(.busy)], .stop, .nothing, .stopped),
    ([.start, .failed(.busy)], .opened, .nothing, .refused(.busy)),
    ([.start, .failed(.busy)], .failed(.damaged), .nothing, .refused(.busy)),
    ([.start, .failed(.busy)], .forcedStop(.vaultLocked), .nothing, .refused(.busy)),
    ([.start, .failed(.busy)], .closed, .nothing, .refused(.busy)),
  ]

  @Test(arguments: rows.indices) func `each event in each state has one outcome`(index: Int) {
    let row = Self.rows[index]
    var machine = EngineStateMachine()
    for event in row.path { _ = machine.handle(event) }
    #expect(machine.handle(row.event) == row.action, "\(row)")
    #expect(machine.state == row.state, "\(row)")
  }

  @Test func `a running engine takes work, any other refuses it with the reason`() {
    var machine = EngineStateMachine()
    #expect(machine.refusal == .stopped)
    _ = machine.handle(.start)
    #expect(machine.refusal == .stopped)
    _ = machine.handle(.opened)
    #expect(machine.refusal == nil)
    var locked = machine
    _ = locked.handle(.forcedStop(.vaultLocked))
    #expect(locked.refusal == .vaultLocked)
    _ = locked.handle(.closed)
    #expect(locked.refusal == .vaultLocked)
    _ = machine.handle(.stop)
    #expect(machine.refusal == .stopped)
  }

  @Test func `an observer sees the current state and each later one`() async {
    let store = EngineStateStore()
    _ = store.handle(.start)
    var states = store.states.makeAsyncIterator()
    _ = store.handle(.opened)
    _ = store.handle(.start)
    _ = store.handle(.stop)
    _ = store.handle(.closed)
    var seen: [EngineState] = []
    while seen.last != .stopped, let state = await states.next() { seen.append(state) }
    #expect(seen == [.starting, .running, .stopping, .stopped])
  }

  @Test func `awaitEnd() returns after everything is closed`() async {
    let store = EngineStateStore()
    await store.awaitEnd()
    _ = store.handle(.start)
    _ = store.handle(.opened)
    _ = store.handle(.stop)
    let waiter = Task {
      await store.awaitEnd()
      return store.state
    }
    _ = store.handle(.closed)
    #expect(await waiter.value == .stopped)
  }
}
