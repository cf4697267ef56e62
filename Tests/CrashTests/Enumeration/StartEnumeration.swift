import FileRecording
import MessagingQueue

/// Records a home from its first start on, vault and database in one record.
///
/// Then it starts an engine on what a kill or a power cut at each step leaves.
struct StartEnumeration {
  private let recorded = RecordedHome()

  /// - Parameter stateCount: about how many of the states to try.
  func callAsFunction(stateCount: Int) async throws -> CrashEnumeration.Totals {
    try await record()
    return await recorded.check(
      stateCount: stateCount, from: "made", failure: "no engine starts", texts)
  }

  /// Two starts of an engine that records an anchor with every second commit; the first ends
  /// cleanly.
  private func record() async throws {
    let home = recorded.home
    let vault = try await recorded.makeVault(of: home)
    let recorder = recorded.recorder
    recorder.mark("made")
    var configuration = EngineConfiguration()
    configuration.anchorCommitCount = 2
    let orders = try Channel("orders")
    for life in 0..<2 {
      let engine = try await MessagingEngine.start(home, vault: vault, configuration: configuration)
      for number in 0..<5 {
        let text = "\(life)-\(number)"
        recorder.mark("publishing \(text)")
        try await engine.publish(Message(channel: orders, payload: Array(text.utf8)))
        recorder.mark("published \(text)")
      }
      for delivery in try await engine.receive(from: orders, maximumCount: 2) {
        let text = String(decoding: delivery.payload, as: UTF8.self)
        recorder.mark("acknowledging \(text)")
        try await engine.acknowledge([delivery.token])
        recorder.mark("acknowledged \(text)")
      }
      try await engine.stop()
    }
  }

  /// The log that an engine finds.
  private func texts(_ state: RecordedHome.State) async throws -> [String] {
    try await recorded.withHome(of: state) { home, vault in
      let engine = try await MessagingEngine.start(home, vault: vault)
      let texts = try await engine.history(of: Channel("orders"))
        .map { String(decoding: $0.payload, as: UTF8.self) }
      try await engine.stop()
      return texts
    }
  }
}
