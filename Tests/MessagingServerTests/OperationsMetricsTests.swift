import AccessControl
import CoreMetrics
import Testing

@testable import MessagingServer

@Suite struct OperationsMetricsTests {
  private let registry = PrometheusRegistry(
    maximumSeriesCount: 6, help: ["a_total": "One\\two\nthree"])

  /// The lines of the registry without its own counter.
  private var lines: [String] {
    registry.text.split(separator: "\n").map(String.init).filter {
      !$0.contains("datavault_series_dropped_total")
    }
  }

  @Test func `PrometheusRegistry writes counters with their help, type and labels`() {
    let counter = Counter(
      label: "a_total", dimensions: [("b", "\"x\\y\nz\""), ("c-d", "é")], factory: registry)
    counter.increment(by: 3)
    counter.increment()
    #expect(
      lines == [
        #"# HELP a_total One\\two\nthree"#, "# TYPE a_total counter",
        #"a_total{b="\"x\\y\nz\"",c_d="é"} 4"#,
      ])
  }

  @Test func `PrometheusRegistry makes names valid`() {
    Gauge(label: "1 a.b:c-d", dimensions: [("2", "")], factory: registry).record(2.5)
    #expect(lines == ["# TYPE _1_a_b:c_d gauge", #"_1_a_b:c_d{_2=""} 2.5"#])
  }

  @Test func `PrometheusRegistry writes numbers that are none as Prometheus does`() {
    for (name, number) in [("a", Double.infinity), ("b", -.infinity), ("c", .nan), ("d", 1e-7)] {
      Gauge(label: name, factory: registry).record(number)
    }
    #expect(lines.filter { !$0.hasPrefix("#") } == ["a +Inf", "b -Inf", "c NaN", "d 1e-07"])
  }

  @Test func `PrometheusRegistry writes recorders as summaries with sum and count`() {
    let recorder = Recorder(label: "a", factory: registry)
    recorder.record(2)
    recorder.record(5)
    #expect(lines == ["# TYPE a summary", "a_sum 7.0", "a_count 2"])
  }

  @Test func `PrometheusRegistry writes timers as histograms whose buckets add up`() {
    let timer = Timer(label: "a_seconds", dimensions: [("r", "x")], factory: registry)
    timer.recordNanoseconds(500_000)
    timer.recordNanoseconds(700_000)
    timer.recordNanoseconds(400_000_000_000)
    let lines = lines
    #expect(lines[0] == "# TYPE a_seconds histogram")
    #expect(lines[1] == #"a_seconds_bucket{r="x",le="0.0005"} 1"#)
    #expect(lines[2] == #"a_seconds_bucket{r="x",le="0.001"} 2"#)
    #expect(lines.contains(#"a_seconds_bucket{r="x",le="300.0"} 2"#))
    #expect(lines.contains(#"a_seconds_bucket{r="x",le="+Inf"} 3"#))
    #expect(lines.suffix(2) == [#"a_seconds_sum{r="x"} 400.0012"#, #"a_seconds_count{r="x"} 3"#])
  }

  @Test func `PrometheusRegistry continues a counter that is made again`() {
    Counter(label: "a", factory: registry).increment()
    Counter(label: "a", factory: registry).increment()
    #expect(lines.last == "a 2")
  }

  @Test func `PrometheusRegistry removes a metric when its last owner destroys it`() {
    let gauges = (0..<2).map { _ in Gauge(label: "a", factory: registry) }
    gauges[0].destroy()
    #expect(lines.count == 2)
    gauges[1].destroy()
    #expect(lines.isEmpty)
  }

  @Test func `PrometheusRegistry drops and counts series beyond its limit and of another type`() {
    for number in 0..<8 {
      Counter(label: "a", dimensions: [("n", "\(number)")], factory: registry).increment()
    }
    #expect(lines.count == 7)
    Gauge(label: "a", factory: registry).record(1)
    #expect(registry.text.hasSuffix("datavault_series_dropped_total 3\n"))
  }

  @Test func `ServerMetrics counts requests by the template of their route and status`() throws {
    let registry = PrometheusRegistry()
    let metrics = try #require(ServerMetrics(registry))
    let record = RequestRecord(
      route: .publish, method: "GET", application: try ApplicationID(1042), status: 200,
      receivedByteCount: 10, sentByteCount: 5, time: .milliseconds(3), connection: 1)
    metrics.count(record)
    metrics.count(record)
    metrics.countPublished(byteCount: 10)
    metrics.count(.admission)
    metrics.set(
      ConnectionSet(maximumCount: 1, memory: MemoryLedger(limitByteCount: 8)), openPollCount: 2,
      webSocketCount: 5, leaseCount: 7, isSealed: true)
    let text = registry.text
    let route = #"route="/publish/{pub}/{sub}/0/{channel}/0""#
    for line in [
      "datavault_server_requests_total{\(route),status=\"200\"} 2",
      "datavault_server_request_seconds_count{\(route)} 2",
      "datavault_server_request_seconds_bucket{\(route),le=\"0.005\"} 2",
      "datavault_server_messages_published_total 1", "datavault_server_published_bytes_total 10",
      #"datavault_server_refusals_total{reason="admission"} 1"#, "datavault_server_connections 0.0",
      "datavault_server_memory_bytes 0.0", "datavault_server_memory_limit_bytes 8.0",
      "datavault_server_open_polls 2.0", "datavault_server_leases 7.0",
      "datavault_server_sealed 1.0",
      "# HELP datavault_server_sealed 1 while the vault is locked",
    ] {
      #expect(text.contains("\(line)\n"))
    }
  }

  @Test func `ServerMetrics counts no time of a client that has left`() throws {
    let registry = PrometheusRegistry()
    let metrics = try #require(ServerMetrics(registry))
    metrics.count(
      RequestRecord(
        route: .subscribe, method: "GET", status: RequestRecord.abandoned, receivedByteCount: 0,
        sentByteCount: 0, time: .seconds(9), connection: 1))
    #expect(registry.text.contains(#"status="499"} 1"#))
    #expect(
      registry.text.contains(
        #"datavault_server_request_seconds_count{route="/v2/subscribe/{sub}/{channels}/0"} 0"#))
  }

  @Test func `each Route has a template of its own`() {
    #expect(Set(Route.allCases.map(\.rawValue)).count == Route.allCases.count)
  }
}
