/// Which requests an owner admits in one epoch, each once: event in, decision out.
///
/// It has no clock: the owner's heartbeats are its time. A new epoch needs a new one.
package struct RequestWindow: Sendable {
  /// How many beats a request can be behind the newest one.
  package static let mostBeatsBehind: UInt64 = 30
  /// The most requests that are remembered, unless a caller says otherwise.
  package static let mostRequests = 100_000

  package enum Decision: Sendable, Hashable {
    /// Carry it out; it is admitted no more.
    case admitted
    /// It is for the owner of another epoch.
    case otherEpoch
    /// Its sender is too far behind, or it was kept back.
    case late
    /// The owner has not written such a heartbeat.
    case unknownBeat
    /// It was admitted before.
    case repeated
    /// Too many requests within the window.
    case full
  }

  package let epoch: EpochID
  private let mostRequests: Int
  private var newestBeat: UInt64 = 0
  private var admitted: Set<RequestID> = []
  private var identifiers: [UInt64: [RequestID]] = [:]

  package init(epoch: EpochID, mostRequests: Int = RequestWindow.mostRequests) {
    self.epoch = epoch
    self.mostRequests = mostRequests
  }

  /// How many requests are remembered.
  package var count: Int { admitted.count }

  /// The owner writes a heartbeat: requests that are too old now are forgotten, as they are admitted no more.
  package mutating func noteBeat(_ beat: UInt64) {
    newestBeat = max(newestBeat, beat)
    for old in identifiers.keys where isLate(old) {
      admitted.subtract(identifiers.removeValue(forKey: old) ?? [])
    }
  }

  /// Decides about a request that was opened.
  package mutating func admit(_ id: RequestID, _ request: Request) -> Decision {
    guard request.epoch == epoch else { return .otherEpoch }
    guard request.beat <= newestBeat else { return .unknownBeat }
    guard !isLate(request.beat) else { return .late }
    guard !admitted.contains(id) else { return .repeated }
    guard admitted.count < mostRequests else { return .full }
    admitted.insert(id)
    identifiers[request.beat, default: []].append(id)
    return .admitted
  }

  private func isLate(_ beat: UInt64) -> Bool {
    newestBeat > Self.mostBeatsBehind && beat < newestBeat - Self.mostBeatsBehind
  }
}
