internal import CoreMetrics
internal import Synchronization

/// A metric with one set of labels, as it keeps its value and writes it.
///
/// Source of the format: Prometheus text exposition 0.0.4.
protocol PrometheusSeries: AnyObject, Sendable {
  /// The word behind `# TYPE NAME`.
  static var type: String { get }
  var key: PrometheusKey { get }

  init(_ key: PrometheusKey)
  func write(to text: inout PrometheusText)
}

/// The name of a metric and the labels of one series.
struct PrometheusKey: Hashable, Sendable {
  let name: String
  /// `a="1",b="2"`, escaped, in the order in which they were given; empty without labels.
  let labels: String

  /// A name and labels; characters that the format does not allow in a name become `_`.
  init(_ name: String, _ labels: [(String, String)]) {
    self.name = Self.valid(name, allowsColon: true)
    self.labels = labels.map { name, value in
      "\(Self.valid(name, allowsColon: false))=\"\(Self.escaped(value))\""
    }.joined(separator: ",")
  }

  private static func valid(_ name: String, allowsColon: Bool) -> String {
    var bytes = name.utf8.map { byte -> UInt8 in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        byte
      case UInt8(ascii: ":") where allowsColon: byte
      default: UInt8(ascii: "_")
      }
    }
    if bytes.first.map({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) ?? true {
      bytes.insert(UInt8(ascii: "_"), at: 0)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func escaped(_ value: String) -> String {
    value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
  }
}

/// Text in Prometheus' format, as it grows.
struct PrometheusText {
  private(set) var text = ""

  /// Writes what stands before the samples of a metric.
  mutating func begin(_ name: String, type: String, help: String?) {
    if let help {
      let help = help.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
      text += "# HELP \(name) \(help)\n"
    }
    text += "# TYPE \(name) \(type)\n"
  }

  /// Writes a sample.
  ///
  /// - Parameters:
  ///   - suffix: what follows the name, as `_count`.
  ///   - label: one more label.
  mutating func add(
    _ key: PrometheusKey, suffix: String = "", label: String = "",
    _ value: some LosslessStringConvertible
  ) {
    let labels = [key.labels, label].filter { !$0.isEmpty }.joined(separator: ",")
    text += "\(key.name)\(suffix)\(labels.isEmpty ? "" : "{\(labels)}") \(value)\n"
  }

  mutating func add(_ key: PrometheusKey, suffix: String = "", _ value: Double) {
    let words = value.isNaN ? "NaN" : value < 0 ? "-Inf" : "+Inf"
    add(key, suffix: suffix, value.isFinite ? value.description : words)
  }
}

/// A number that only rises, until the process ends.
final class CounterSeries: PrometheusSeries, CounterHandler {
  static let type = "counter"
  let key: PrometheusKey
  private let value = Atomic<Int64>(0)

  init(_ key: PrometheusKey) { self.key = key }

  func increment(by amount: Int64) { value.wrappingAdd(amount, ordering: .relaxed) }
  func reset() { value.store(0, ordering: .relaxed) }

  func write(to text: inout PrometheusText) { text.add(key, value.load(ordering: .relaxed)) }
}

/// The last number that was set.
final class GaugeSeries: PrometheusSeries, RecorderHandler {
  static let type = "gauge"
  let key: PrometheusKey
  private let value = Mutex<Double>(0)

  init(_ key: PrometheusKey) { self.key = key }

  func record(_ value: Int64) { record(Double(value)) }
  func record(_ value: Double) { self.value.withLock { $0 = value } }

  func write(to text: inout PrometheusText) { text.add(key, value.withLock(\.self)) }
}

/// How many numbers were recorded, and their sum.
final class SummarySeries: PrometheusSeries, RecorderHandler {
  static let type = "summary"
  let key: PrometheusKey
  private let value = Mutex<(count: Int, sum: Double)>((0, 0))

  init(_ key: PrometheusKey) { self.key = key }

  func record(_ value: Int64) { record(Double(value)) }
  func record(_ value: Double) {
    self.value.withLock {
      $0.count += 1
      $0.sum += value
    }
  }

  func write(to text: inout PrometheusText) {
    let (count, sum) = value.withLock(\.self)
    text.add(key, suffix: "_sum", sum)
    text.add(key, suffix: "_count", count)
  }
}

/// How many times were recorded, in seconds: each bucket counts those up to its bound.
final class HistogramSeries: PrometheusSeries, TimerHandler {
  static let type = "histogram"
  /// From a commit to a subscriber that waits for its whole time, in seconds.
  static let bounds = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 300,
  ]

  private struct Value {
    /// Beside the bounds, one for what is above all of them.
    var counts = [Int](repeating: 0, count: bounds.count + 1)
    var sum = 0.0
  }

  let key: PrometheusKey
  private let value = Mutex(Value())

  init(_ key: PrometheusKey) { self.key = key }

  func recordNanoseconds(_ duration: Int64) {
    let seconds = Double(duration) / 1_000_000_000
    let index = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
    value.withLock {
      $0.counts[index] += 1
      $0.sum += seconds
    }
  }

  func write(to text: inout PrometheusText) {
    let value = value.withLock(\.self)
    var count = 0
    for (bound, number) in zip(Self.bounds.map(\.description) + ["+Inf"], value.counts) {
      count += number
      text.add(key, suffix: "_bucket", label: "le=\"\(bound)\"", count)
    }
    text.add(key, suffix: "_sum", value.sum)
    text.add(key, suffix: "_count", count)
  }
}
