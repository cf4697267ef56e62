@_spi(Testing) import DataVault

/// The record of attempts, `<id>.retry`.
///
/// Anyone who can write the file can change it.
///
/// 8 bytes of the input are the clock. The rest edits a record, or is one.
final class RetryFixture {
  private static let longestWait = Duration.seconds(900)
  private static let records = [
    #"{"version":1,"failures":0,"retryAt":null,"openedAt":1789999000000}"#,
    #"{"version":1,"failures":3,"retryAt":1790000001000,"openedAt":1789999000000}"#,
    #"{"version":1,"failures":1000000,"retryAt":9007199254740991,"openedAt":null}"#,
  ].map { Array("\($0)\n".utf8) }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard input.count > 8 else { return }
    let now = Int64(truncatingIfNeeded: input.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    guard let edits = Edits(UnsafeBufferPointer(rebasing: input.dropFirst(8))) else { return }
    if edits.mode == 0xFF {
      check(Array(input.dropFirst(9)), now)
    } else {
      var record = Self.records[Int(edits.mode) % Self.records.count]
      edits.apply(to: &record)
      check(record, now)
    }
  }

  private func check(_ record: [UInt8], _ now: Int64) {
    guard let reading = AttemptProbe.reading(record, now: now) else { return }
    require(reading.written == record, "a record has two encodings")
    require((.zero...Self.longestWait).contains(reading.wait), "the wait is longer than 15 minutes")
    let next = AttemptProbe.reading(reading.afterFailure, now: now)
    require(next?.written == reading.afterFailure, "a written record is not read back")
    require(next?.wait == reading.waitAfterFailure, "the wait differs from the written one")
    require(reading.waitAfterFailure <= Self.longestWait, "the wait is longer than 15 minutes")
    let failures = record.split(separator: UInt8(ascii: ","))[1].dropFirst(11)
    let isThird = Int(String(decoding: failures, as: UTF8.self)).map { $0 >= 2 } ?? true
    require(isThird == (reading.waitAfterFailure > .zero), "a failure has the wrong wait")
  }
}
