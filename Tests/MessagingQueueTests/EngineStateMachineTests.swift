import MessagingQueue
import Testing

@Suite struct EngineStateMachineTests {
  private static let refused = EngineState.refused(.vaultLocked)

  /// One row: the events that lead to a state, an event there, the action, and the next state.
  struct Row: CustomTestStringConvertible {
    let path: [EngineStateMachine.Event]
    let event: EngineStateMachine.Event
    let action: EngineStateMachine.Action
    let state: EngineState

    init(
      _ path: [EngineStateMachine.Event], _ event: EngineStateMachine.Event,
      _ action: EngineStateMachine.Action,
      _ state: EngineState
    ) {
      (self.path, self.event, self.action, self.state) = (path, event, action, state)
    }

    var testDescription: String { "\(path) + \(event)" }
  }

  static let rows: [Row] = [
    Row([], .start, .open, .starting),
    Row([], .opened, .nothing, .stopped),
    Row([], .failed(.busy), .nothing, .stopped),
    Row([], .stop, .nothing, .stopped),
    Row([], .forcedStop(.vaultLocked), .nothing, .stopped),
    Row([], .closed, .nothing, .stopped),

    Row([.start], .start, .nothing, .starting),
    Row([.start], .opened, .nothing, .running),
    Row([.start], .failed(.keyMissing), .announceEnd, .refused(.keyMissing)),
    Row([.start], .stop, .abandonOpening, .stopping),
    Row([.start], .forcedStop(.vaultLocked), .abandonOpening, .stopping),
    Row([.start], .closed, .nothing, .starting),

    Row([.start, .opened], .start, .nothing, .running),
    Row([.start, .opened], .opened, .nothing, .running),
    Row([.start, .opened], .failed(.busy), .nothing, .running),
    Row([.start, .opened], .stop, .closeDown, .stopping),
    Row([.start, .opened], .forcedStop(.vaultLocked), .closeDown, .stopping),
    Row([.start, .opened], .closed, .nothing, .running),

    Row([.start, .opened, .stop], .start, .nothing, .stopping),
    Row([.start, .opened, .stop], .stop, .awaitEnd, .stopping),
    Row([.start, .opened, .stop], .forcedStop(.vaultLocked), .nothing, .stopping),
    Row([.start, .opened, .stop], .closed, .announceEnd, .stopped),
    Row([.start, .opened, .forcedStop(.vaultLocked)], .stop, .awaitEnd, .stopping),
    Row([.start, .opened, .forcedStop(.vaultLocked)], .closed, .announceEnd, refused),
    Row([.start, .stop], .opened, .closeDown, .stopping),
    Row([.start, .stop], .failed(.busy), .announceEnd, .stopped),
    Row([.start, .forcedStop(.vaultLocked)], .opened, .closeDown, .stopping),
    Row([.start, .forcedStop(.vaultLocked)], .failed(.busy), .announceEnd, refused),

    Row([.start, .failed(.busy)], .start, .open, .starting),
    Row([.start, .failed(.busy)], .stop, .nothing, .stopped),
    Row([.start, .failed(.busy)], .opened, .nothing, .refused(.busy)),
    Row([.start, .failed(.busy)], .failed(.damaged), .nothing, .refused(.busy)),
    Row([.start, .failed(.busy)], .forcedStop(.vaultLocked), .nothing, .refused(.busy)),
    Row([.start, .failed(.busy)], .closed, .nothing, .refused(.busy)),
  ]

  @Test(arguments: rows) func `each event in each state has one outcome`(row: Row) {
    var machine = EngineStateMachine()
    for event in row.path { _ = machine.handle(event) }
    #expect(machine.handle(row.event) == row.action)
    #expect(machine.state == row.state)
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
