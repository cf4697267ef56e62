import Foundation
import SystemPackage

/// The programs of the server's rows, and how our server is started.
struct Servers {
  /// The installed `datavaultd`.
  let program: String
  /// The built load generator.
  let load: String
  /// The root below which the peers' packages are unpacked; nil if they are not.
  let peers: FilePath?

  /// A server, with what the load generator has to know.
  struct Started {
    let process: ServerProcess
    /// As the load generator names it.
    let service: String
  }

  /// An application on a home of its own.
  struct Application {
    static let name = "benchmark"
    let home: FilePath
    let publishKey, subscribeKey: String

    var pubNubService: String { "pubnub:\(publishKey):\(subscribeKey)" }
    var pusherService: String { "pusher:\(publishKey):\(subscribeKey)" }
    var stompService: String { "stomp:\(Self.name)" }
  }

  /// What a server did under load.
  struct Throughput {
    /// The acknowledged messages in a second.
    let rate: Double
    /// The server's processor time for each message.
    let processorSeconds: Double
  }

  /// Makes a home with an application that everyone can use, as the peers can be used.
  func makeApplication(in home: FilePath) throws -> Application {
    let output = try Process.output(of: [
      program, "app", "add", Application.name, "--open", "--json", "--quiet", "--home", home.string,
    ])
    struct Report: Decodable { let publishKey, subscribeKey: String }
    let report = try JSONDecoder().decode(Report.self, from: Data(output.utf8))
    return Application(
      home: home, publishKey: report.publishKey, subscribeKey: report.subscribeKey)
  }

  /// Lets everyone take the messages of the load generator's channel as jobs: an open application does not.
  func allowLeases(_ application: Application) throws {
    _ = try Process.output(of: [
      program, "grant", Application.name, "--channel", "benchmark", "--lease", "--quiet", "--home",
      application.home.string,
    ])
  }

  /// Starts our server for HTTP.
  ///
  /// - Parameters:
  ///   - service: what the load generator uses; nil for PubNub's protocol.
  ///   - port: nil for a free one.
  ///   - identity: the certificate and the key for TLS, in PEM; nil for plain HTTP.
  func start(
    _ application: Application, service: String? = nil, port: UInt16? = nil,
    identity: (certificate: String, key: String)? = nil
  ) throws -> Started {
    let port = try port ?? LoopbackPort.free()
    var arguments = [
      program, "serve", "--listen", "127.0.0.1:\(port)", "--home", application.home.string,
    ]
    if let identity {
      arguments += ["--tls-certificate", identity.certificate, "--tls-key", identity.key]
    }
    return Started(
      process: try ServerProcess(arguments, port: port),
      service: service ?? application.pubNubService)
  }

  /// Starts our server for STOMP.
  func startSTOMP(_ application: Application) throws -> Started {
    let port = try LoopbackPort.free()
    let arguments = [
      program, "serve", "--listen", "127.0.0.1:0", "--stomp-listen", "127.0.0.1:\(port)", "--home",
      application.home.string,
    ]
    return Started(
      process: try ServerProcess(arguments, port: port), service: application.stompService)
  }

  /// Makes a certificate for TLS, with a key on the curve P-256.
  func makeIdentity(in folder: FilePath) throws -> (certificate: String, key: String) {
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    let (certificate, key) = (
      folder.appending("certificate.pem").string, folder.appending("key.pem").string
    )
    _ = try Process.output(of: [
      "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
      "-nodes", "-subj", "/CN=127.0.0.1", "-days", "2", "-out", certificate, "-keyout", key,
    ])
    return (certificate, key)
  }

  /// Publishes over some connections for some time.
  func publish(to server: Started, connections: Int, seconds: Double) throws -> Throughput {
    try load(server, "publish", ["\(connections)", "\(seconds)"])
  }

  /// Publishes so many messages, and a few more at most.
  func fill(_ server: Started, messages: Int) throws {
    _ = try load(server, "fill", ["64", "\(messages)"])
  }

  /// Receives and acknowledges so many messages.
  func work(
    _ server: Started, workers: Int, messages: Int, prefetchCount: Int
  ) throws -> Throughput {
    try load(server, "work", ["\(workers)", "\(messages)", "\(prefetchCount)"])
  }

  private func load(_ server: Started, _ command: String, _ figures: [String]) throws -> Throughput
  {
    let before = try server.process.processorSeconds()
    let output = try Process.output(
      of: [load, command, server.service, "\(server.process.port)"] + figures)
    let processorSeconds = try server.process.processorSeconds() - before
    let figures = output.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
    guard figures.count == 2 else { throw BenchmarkError("the load generator failed") }
    return Throughput(
      rate: figures[0] / figures[1], processorSeconds: processorSeconds / figures[0])
  }
}
