internal import Glibc

/// Waits until a condition holds, and looks every ten milliseconds, at first more often.
///
/// - Throws: ``TimeoutError`` after two minutes and 1,000 looks, which a loaded machine does not reach: there, each look
///   waits for its turn, too.
package func eventually(
  _ what: @autoclosure () -> String = "", isolation: isolated (any Actor)? = #isolation,
  file: String = #fileID, line: Int = #line, _ condition: () async throws -> Bool
) async throws {
  try await eventually(what(), file: file, line: line) { try await condition() ? () : nil }
}

/// Waits until there is a value, as the form for conditions does.
package func eventually<Value>(
  _ what: @autoclosure () -> String = "", isolation: isolated (any Actor)? = #isolation,
  file: String = #fileID, line: Int = #line, _ value: () async throws -> Value?
) async throws -> Value {
  var timeout = Timeout()
  while true {
    if let value = try await value() { return value }
    guard let pause = timeout.nextPause() else { throw TimeoutError(what(), file, line) }
    try await Task.sleep(for: pause)
  }
}

/// Waits as the asynchronous form does, on a thread that a test can block.
///
/// Disfavored, or a closure without `await` would select it in an asynchronous function, too.
@_disfavoredOverload
package func eventually(
  _ what: @autoclosure () -> String = "", file: String = #fileID, line: Int = #line,
  _ condition: () throws -> Bool
) throws {
  try eventually(what(), file: file, line: line) { try condition() ? () : nil }
}

/// Waits for a value as the asynchronous form does, on a thread that a test can block.
@_disfavoredOverload
package func eventually<Value>(
  _ what: @autoclosure () -> String = "", file: String = #fileID, line: Int = #line,
  _ value: () throws -> Value?
) throws -> Value {
  var timeout = Timeout()
  while true {
    if let value = try value() { return value }
    guard let pause = timeout.nextPause() else { throw TimeoutError(what(), file, line) }
    usleep(UInt32(pause / .microseconds(1)))
  }
}

/// A wait of a test that was in vain.
package struct TimeoutError: Error, CustomStringConvertible {
  package let description: String

  init(_ what: String, _ file: String, _ line: Int) {
    description = "\(file):\(line): not within two minutes\(what.isEmpty ? "" : ": ")\(what)"
  }
}

private struct Timeout {
  private let end = ContinuousClock.now + .seconds(120)
  private var lookCount = 0

  /// The pause before another look, from 0.1 to 10 milliseconds; nil after the last look.
  mutating func nextPause() -> Duration? {
    lookCount += 1
    guard lookCount <= 1_000 || ContinuousClock.now < end else { return nil }
    return .microseconds(100) * min(lookCount, 100)
  }
}
