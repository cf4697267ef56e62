import Glibc

/// Loads a server over many connections, in a process of its own, so that the server's cost is not mixed with it.
///
/// Usage:
///
///     Load publish SERVICE PORT CONNECTIONS SECONDS
///     Load fill SERVICE PORT CONNECTIONS COUNT
///     Load work SERVICE PORT CONNECTIONS COUNT PREFETCH
///     Load subscribe SERVICE PORT [tls]
///
/// SERVICE is `pubnub:PUBLISH-KEY:SUBSCRIBE-KEY`, `pusher:PUBLISH-KEY:SUBSCRIBE-KEY`, `nchan`, `nchan-websocket`,
/// `redis`, `stomp:HOST` or `stomp:HOST:LOGIN:PASSCODE`.
///
/// `publish` publishes for some seconds, `fill` publishes about COUNT messages, and `work` receives and acknowledges
/// COUNT messages of a queue. Each prints how many messages were acknowledged, and in how many seconds. `subscribe`
/// reads commands, and answers each with one line: ``Subscribers`` has them.
@main enum Load {
  /// No command takes longer, even on a busy machine.
  private static let mostSeconds: UInt32 = 180

  static func main() throws {
    raiseDescriptorLimit()
    let arguments = Array(CommandLine.arguments.dropFirst())
    guard arguments.count >= 3, let service = Service(arguments[1]),
      let port = UInt16(arguments[2])
    else { throw LoadError("unknown arguments: \(arguments)") }
    switch arguments[0] {
    case "publish", "fill", "work":
      let figures = arguments.dropFirst(3).compactMap(Double.init)
      guard figures.count >= 2, let count = Int(exactly: figures[0]) else {
        throw LoadError("unknown arguments: \(arguments)")
      }
      alarm(mostSeconds)
      let result: (count: Int, seconds: Double)
      switch (arguments[0], figures.count) {
      case ("publish", 2):
        result = try Publishers(service, port: port, count: count).publish(for: figures[1])
      case ("fill", 2):
        result = try Publishers(service, port: port, count: count).fill(Int(figures[1]))
      case ("work", 3):
        let workers = try Workers(
          service, port: port, count: count, prefetchCount: Int(figures[2]))
        result = try workers.acknowledge(Int(figures[1]))
      default: throw LoadError("unknown arguments: \(arguments)")
      }
      print(result.count, result.seconds)
    case "subscribe":
      let tls = arguments.dropFirst(3).first == "tls" ? try TLSClient() : nil
      let subscribers = Subscribers(service, port: port, tls: tls)
      while let line = readLine() {
        alarm(mostSeconds)
        print(try subscribers.run(line))
        fflush(nil)
        alarm(0)
      }
    default: throw LoadError("unknown arguments: \(arguments)")
    }
  }

  /// Each connection needs a descriptor, and the usual limit is 1024.
  private static func raiseDescriptorLimit() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}

/// What ends the load generator.
struct LoadError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// The seconds of a clock that does not go back.
func secondsNow() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
