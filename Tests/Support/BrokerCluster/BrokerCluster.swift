import Foundation
import Synchronization
package import TestSupport

/// Brokers of NATS in processes of their own, on this machine, which end with this object.
public final class BrokerCluster: Sendable {
  /// How brokers are configured.
  public struct Options: Sendable {
    /// Default: 3.
    public var count = 3
    /// The nkeys that can log in; empty for all clients.
    public var users: [String] = []
    /// The most bytes of all streams of a broker, as nats-server writes it.
    ///
    /// Default: 1 GiB.
    public var mostFileBytes = "1GB"
    /// What each of the users must not do, in the form of nats-server; nil for everything allowed.
    public var permissions: String?
    /// The key of the brokers' own encryption at rest; nil for none.
    public var cipherKey: String?
    /// The size of a disk for the store of broker 0 alone; nil for none.
    public var diskByteCount: Int?
    /// Whether brokers write each message of each connection into their logs.
    ///
    /// Default: false.
    public var isTraced = false
    /// Certificate and key files for TLS; nil for none.
    public var identity: (certificate: String, key: String)?

    /// Makes the options of three brokers without login.
    public init() {}
  }

  private struct State: Sendable {
    var options: Options
    var processes: [Int: Process] = [:]
  }

  private let folder = ScratchFolder()
  private let ports: [UInt16]
  private let routes: [UInt16]
  private let monitors: [UInt16]
  private let state: Mutex<State>
  /// The disk of broker 0's store, if it has one of its own.
  package let disk: SmallDisk?

  /// The program, which `scripts/install-dependencies --tests` unpacks, or DATAVAULT_NATS_SERVER names; nil without it.
  public static let program: String? = [
    ProcessInfo.processInfo.environment["DATAVAULT_NATS_SERVER"],
    Repository.path(".build/nats/usr/sbin/nats-server"),
  ].compactMap(\.self).first { FileManager.default.isExecutableFile(atPath: $0) }

  /// Why tests with brokers do not run.
  public static let skipReason = """
    there is no nats-server: scripts/install-dependencies --tests unpacks it, or name one in DATAVAULT_NATS_SERVER
    """

  /// Starts the brokers.
  public init(_ options: Options = Options()) throws {
    state = Mutex(State(options: options))
    ports = try LoopbackSocket.freePorts(options.count)
    routes = try LoopbackSocket.freePorts(options.count)
    monitors = try LoopbackSocket.freePorts(options.count)
    disk = try options.diskByteCount.map { [folder] in
      try SmallDisk(at: folder.path("store0"), byteCount: $0)
    }
    for index in 0..<options.count { try start(index) }
  }

  deinit {
    for (_, process) in state.withLock({ $0.processes }) where process.isRunning {
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
  }

  /// How brokers are configured that start from now on.
  public func configure(_ change: (inout Options) -> Void) {
    state.withLock { change(&$0.options) }
  }

  private var options: Options { state.withLock(\.options) }

  /// The port of a broker for clients.
  public func port(of index: Int) -> UInt16 { ports[index] }

  /// Where clients connect.
  public var addresses: [String] {
    let options = options
    return ports.map { "\(options.identity == nil ? "nats" : "tls")://127.0.0.1:\($0)" }
  }

  /// The directory of one broker's store.
  public func store(of index: Int) -> String { folder.path("store\(index)") }

  /// What a broker has written to its log.
  public func log(of index: Int) -> String { folder.contents(of: "log\(index)") ?? "" }

  /// What the brokers have logged as warnings and errors, for a test that fails.
  public var complaints: String {
    ports.indices.flatMap { index in
      log(of: index).split(separator: "\n")
        .filter { line in ["[WRN]", "[ERR]", "[FTL]"].contains { line.contains($0) } }
        .suffix(5).map { "\(name(of: index)): \($0)" }
    }.joined(separator: "\n")
  }

  /// What a broker answers to a monitoring request, with its headers.
  public func monitoring(of index: Int, _ target: String) throws -> [UInt8] {
    let socket = try LoopbackSocket(connectedTo: monitors[index])
    let request = Array("GET \(target) HTTP/1.0\r\n\r\n".utf8)
    _ = request.withUnsafeBytes { send(socket.descriptor, $0.baseAddress, $0.count, 0) }
    var answer: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65_536)
    while case let count = recv(socket.descriptor, &piece, piece.count, 0), count > 0 {
      answer += piece[..<count]
    }
    return answer
  }

  /// The name of a broker.
  public func name(of index: Int) -> String { "n\(index)" }

  /// Starts a broker on its store.
  public func start(_ index: Int) throws {
    guard let program = Self.program else { throw CocoaError(.fileNoSuchFile) }
    try folder.put(configuration(of: index), at: "conf\(index)")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = ["-c", folder.path("conf\(index)"), "-l", folder.path("log\(index)")]
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    state.withLock { $0.processes[index] = process }
  }

  private func configuration(of index: Int) -> String {
    let options = options
    var text = """
      server_name: \(name(of: index))
      listen: 127.0.0.1:\(ports[index])
      http: 127.0.0.1:\(monitors[index])
      max_payload: 1MB
      jetstream {
        store_dir: "\(store(of: index))"
        max_mem: 64MB
        max_file: \(options.mostFileBytes)

      """
    if let key = options.cipherKey { text += "  cipher: chachapoly\n  key: \"\(key)\"\n" }
    text += "}\n"
    if options.count > 1 {
      let others = routes.map { "\"nats://127.0.0.1:\($0)\"" }.joined(separator: ", ")
      text += """
        cluster { name: "test", listen: "127.0.0.1:\(routes[index])", routes: [\(others)] }

        """
    }
    if options.isTraced { text += "debug: true\ntrace: true\n" }
    if !options.users.isEmpty {
      let limits = options.permissions.map { ", permissions: \($0)" } ?? ""
      let users = options.users.map { "{ nkey: \($0)\(limits) }" }.joined(separator: ", ")
      text += "authorization { users: [\(users)] }\n"
    }
    if let (certificate, key) = options.identity {
      text += "tls { cert_file: \"\(certificate)\", key_file: \"\(key)\" }\n"
    }
    return text
  }

  /// The processor time that all brokers have used, in seconds.
  public var processorSeconds: Double {
    let ids = state.withLock { $0.processes.values.map(\.processIdentifier) }
    return ids.reduce(0) { total, id in
      let fields = (try? ProcFile.text("/proc/\(id)/stat"))?.split(separator: " ") ?? []
      let ticks = fields.count > 14 ? (Double(fields[13]) ?? 0) + (Double(fields[14]) ?? 0) : 0
      return total + ticks / 100
    }
  }

  /// Sends a signal to a broker's process.
  public func signal(_ index: Int, _ number: Int32) {
    guard let process = state.withLock({ $0.processes[index] }), process.isRunning else { return }
    kill(process.processIdentifier, number)
    if number == SIGKILL { process.waitUntilExit() }
  }
}
