import AccessControl
import Testing
import TestSupport

@testable import MessagingServer

@Suite struct OperationsAdmissionTests {
  private static func application(_ number: Int) -> ApplicationID {
    guard let id = try? ApplicationID(Int64(number)) else { preconditionFailure("no number") }
    return id
  }

  private static var limits: Admission.Limits {
    var limits = Admission.Limits()
    limits.byteCount = 100_000
    limits.operationCount = 200
    limits.quietByteCount = 2000
    limits.quietOperationCount = 2
    return limits
  }

  /// Takes until a refusal, and returns how often.
  private static func flood(
    _ admission: inout Admission, _ number: Int, byteCount: Int
  ) -> Int {
    var count = 0
    while admission.take(byteCount, of: application(number)) { count += 1 }
    return count
  }

  @Test func `Admission gives one flooding application the shared half, by bytes or operations`() {
    var byBytes = Admission(Self.limits)
    let byteFlood = Self.flood(&byBytes, 1, byteCount: 1000)
    #expect(byteFlood == 50)
    var byOperations = Admission(Self.limits)
    let operationFlood = Self.flood(&byOperations, 1, byteCount: 1)
    #expect(operationFlood == 100)
  }

  @Test func `Admission admits a quiet application beside one that floods`() {
    var admission = Admission(Self.limits)
    _ = Self.flood(&admission, 1, byteCount: 1000)
    let taken = (1...3).map { _ in admission.take(1000, of: Self.application(2)) }
    #expect(taken == [true, true, false], "it is not quiet with the third")
  }

  @Test func `Admission gives two flooding applications the same share in the end`() {
    var admission = Admission(Self.limits)
    var counts = [0, Self.flood(&admission, 1, byteCount: 1000), 0]
    for _ in 0..<1000 {
      for number in 1...2 {
        if counts[number] > 0 {
          admission.release(1000, of: Self.application(number))
          counts[number] -= 1
        }
        counts[number] += Self.flood(&admission, number, byteCount: 1000)
      }
    }
    #expect(abs(counts[1] - counts[2]) <= 2)
    #expect(counts[1] + counts[2] >= 48)
  }

  @Test func `Admission forgets an application that has nothing in flight`() {
    var admission = Admission(Self.limits)
    _ = admission.take(7, of: Self.application(1))
    #expect(admission.activeCount == 1)
    admission.release(7, of: Self.application(1))
    #expect(admission.activeCount == 0)
    #expect(admission.byteCount == 0)
    #expect(admission.operationCount == 0)
  }

  /// What is in flight, as a list.
  private struct Model {
    var inFlight: [(application: Int, byteCount: Int)] = []

    func load(_ application: Int? = nil) -> (byteCount: Int, operationCount: Int) {
      let those = inFlight.filter { application == nil || $0.application == application }
      return (those.reduce(0) { $0 + $1.byteCount }, those.count)
    }
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `Admission stays below its limits and admits quiet applications, whatever comes`(
    seed: UInt64
  ) {
    var random = SeededRandom(seed: seed)
    var admission = Admission(Self.limits)
    var model = Model()
    for _ in 0..<5000 {
      if random.oneIn(100) {
        // One application alone takes all that it can have.
        for ended in model.inFlight {
          admission.release(ended.byteCount, of: Self.application(ended.application))
        }
        let count = Self.flood(&admission, 1, byteCount: 900)
        model.inFlight = Array(repeating: (1, 900), count: count)
      }
      // The first applications flood, the others do not.
      let application = random.oneIn(3) ? 4 + random.next(8) : 1 + random.next(3)
      let byteCount = random.oneIn(10) ? random.next(6000) : random.next(800)
      if random.oneIn(3), !model.inFlight.isEmpty {
        let ended = model.inFlight.remove(at: random.next(model.inFlight.count))
        admission.release(ended.byteCount, of: Self.application(ended.application))
      } else if random.oneIn(2) || application < 4 {
        let before = model.load(application)
        let isQuiet = before.operationCount < 2 && before.byteCount + byteCount <= 2000
        if admission.take(byteCount, of: Self.application(application)) {
          model.inFlight.append((application, byteCount))
          let load = model.load(application)
          #expect(isQuiet || load.byteCount <= 50_000 && load.operationCount <= 100)
        } else {
          #expect(!isQuiet, "eleven quiet applications have at most 22,000 bytes")
        }
      }
      let total = model.load()
      #expect(admission.byteCount == total.byteCount)
      #expect(admission.operationCount == total.operationCount)
      #expect(total.byteCount <= 100_000 && total.operationCount <= 200)
    }
  }

  @Test func `RequestRate refuses what comes faster than its rate after a burst`() {
    var limits = RequestRate.Limits()
    limits.requestsPerSecond = 10
    limits.burstCount = 5
    var rate = RequestRate(limits)
    let start: UInt64 = 1_000_000_000_000
    let taken = (0..<20).filter { _ in rate.take(atNanoseconds: start) }
    #expect(taken.count == 5)
    let next = [99_000_000, 100_000_000, 100_000_000 as UInt64].map {
      rate.take(atNanoseconds: start + $0)
    }
    #expect(next == [false, true, false])
    // A pause fills the bucket again, and no further.
    let later = (0..<20).filter { _ in rate.take(atNanoseconds: start + 9_000_000_000) }
    #expect(later.count == 5)
  }

  @Test func `RequestRate lets its rate pass for any length of time`() {
    var rate = RequestRate()
    let refused = (0..<100_000).filter { !rate.take(atNanoseconds: UInt64($0) * 500_000) }
    #expect(refused.isEmpty)
  }
}
