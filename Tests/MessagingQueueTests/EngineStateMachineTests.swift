import MessagingQueue
import Testing

@Suite struct EngineStateMachineTests {
  private static let refused = EngineState.refused(.vaultLocked)

  /// One row: what leads to a state, an event there, what is to be done, and the state after.
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
    var life = EngineStateMachine()
    for event in row.path { _ = life.handle(event) }
    #expect(life.handle(row.event) == row.action)
    #expect(life.state == row.state)
  }

  @Test func `work is taken while it runs, and refused with the reason otherwise`() {
    var life = EngineStateMachine()
    #expect(life.refusal == .stopped)
    _ = life.handle(.start)
    #expect(life.refusal == .stopped)
    _ = life.handle(.opened)
    #expect(life.refusal == nil)
    var locked = life
    _ = locked.handle(.forcedStop(.vaultLocked))
    #expect(locked.refusal == .vaultLocked)
    _ = locked.handle(.closed)
    #expect(locked.refusal == .vaultLocked)
    _ = life.handle(.stop)
    #expect(life.refusal == .stopped)
  }

  @Test func `an observer sees the state now and each one after it`() async {
    let keeper = EngineStateStore()
    _ = keeper.handle(.start)
    var states = keeper.states.makeAsyncIterator()
    _ = keeper.handle(.opened)
    _ = keeper.handle(.start)
    _ = keeper.handle(.stop)
    _ = keeper.handle(.closed)
    var seen: [EngineState] = []
    while seen.last != .stopped, let state = await states.next() { seen.append(state) }
    #expect(seen == [.starting, .running, .stopping, .stopped])
  }

  @Test func `who waits for the end is told when everything is closed`() async {
    let keeper = EngineStateStore()
    await keeper.awaitEnd()
    _ = keeper.handle(.start)
    _ = keeper.handle(.opened)
    _ = keeper.handle(.stop)
    let waiter = Task {
      await keeper.awaitEnd()
      return keeper.state
    }
    _ = keeper.handle(.closed)
    #expect(await waiter.value == .stopped)
  }
}
