import Replication
import TestSupport
import Testing

@Suite struct RequestWindowTests {
  private static let epoch = EpochID(1)

  private static func request(beat: UInt64, epoch: EpochID = epoch) -> Request {
    Request(epoch: epoch, beat: beat, .extend([], leaseMilliseconds: 1))
  }

  @Test func `a request is admitted once`() {
    var window = RequestWindow(epoch: Self.epoch)
    #expect(window.admit(RequestID(1), Self.request(beat: 0)) == .admitted)
    #expect(window.admit(RequestID(1), Self.request(beat: 0)) == .repeated)
    #expect(window.admit(RequestID(2), Self.request(beat: 0)) == .admitted)
    #expect(window.count == 2)
  }

  @Test func `a request of another epoch is refused`() {
    var window = RequestWindow(epoch: Self.epoch)
    let other = Self.request(beat: 0, epoch: EpochID(2))
    #expect(window.admit(RequestID(1), other) == .otherEpoch)
    #expect(window.admit(RequestID(1), Self.request(beat: 0)) == .admitted)
  }

  @Test func `a request is admitted up to 30 beats behind, and not ahead`() {
    var window = RequestWindow(epoch: Self.epoch)
    window.noteBeat(30)
    #expect(window.admit(RequestID(1), Self.request(beat: 0)) == .admitted)
    #expect(window.admit(RequestID(2), Self.request(beat: 30)) == .admitted)
    #expect(window.admit(RequestID(3), Self.request(beat: 31)) == .unknownBeat)
    window.noteBeat(31)
    #expect(window.admit(RequestID(4), Self.request(beat: 0)) == .late)
    #expect(window.admit(RequestID(1), Self.request(beat: 0)) == .late)
    #expect(window.admit(RequestID(5), Self.request(beat: 1)) == .admitted)
    #expect(window.admit(RequestID(2), Self.request(beat: 30)) == .repeated)
  }

  @Test func `a full window refuses until old requests are forgotten`() {
    var window = RequestWindow(epoch: Self.epoch, mostRequests: 2)
    #expect(window.admit(RequestID(1), Self.request(beat: 0)) == .admitted)
    window.noteBeat(1)
    #expect(window.admit(RequestID(2), Self.request(beat: 1)) == .admitted)
    #expect(window.admit(RequestID(3), Self.request(beat: 1)) == .full)
    #expect(window.admit(RequestID(2), Self.request(beat: 1)) == .repeated)
    window.noteBeat(31)
    #expect(window.admit(RequestID(3), Self.request(beat: 1)) == .admitted)
    #expect(window.admit(RequestID(4), Self.request(beat: 31)) == .full)
    #expect(RequestWindow.mostRequests == 100_000)
  }

  @Test func `a beat that is noted again, or late, changes nothing`() {
    var window = RequestWindow(epoch: Self.epoch)
    window.noteBeat(40)
    #expect(window.admit(RequestID(1), Self.request(beat: 10)) == .admitted)
    window.noteBeat(3)
    window.noteBeat(40)
    #expect(window.admit(RequestID(2), Self.request(beat: 9)) == .late)
    #expect(window.admit(RequestID(1), Self.request(beat: 10)) == .repeated)
    window.noteBeat(.max)
    #expect(window.count == 0)
    #expect(window.admit(RequestID(3), Self.request(beat: .max)) == .admitted)
  }

  @Test func `no request is admitted twice, however it is kept back and repeated`() {
    for seed in UInt64(1)...20 {
      var random = SeededRandom(seed: seed)
      var window = RequestWindow(epoch: Self.epoch, mostRequests: 200)
      var seen: [(RequestID, Request)] = []
      var admitted: Set<RequestID> = []
      var beat: UInt64 = 0
      for _ in 0..<3000 {
        if Int.random(in: 0..<20, using: &random) == 0 {
          beat += .random(in: 1...4, using: &random)
          window.noteBeat(beat)
        }
        let isNew = seen.isEmpty || Bool.random(using: &random)
        if isNew {
          let behind = UInt64.random(in: 0...35, using: &random)
          seen.append(
            (RequestID(using: &random), Self.request(beat: beat > behind ? beat - behind : 0)))
        }
        guard let (id, request) = isNew ? seen.last : seen.randomElement(using: &random) else {
          continue
        }
        let decision = window.admit(id, request)
        #expect(window.count <= 200)
        if decision == .admitted {
          #expect(admitted.insert(id).inserted, "seed \(seed): admitted twice")
        } else if isNew {
          #expect(decision == .full || decision == .late)
        }
      }
      #expect(admitted.count > 200)
    }
  }
}
