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
    let home: FilePath
    let service: String
  }

  /// Makes a home with an application that everyone can use, as the peers can be used.
  func makeApplication(in home: FilePath) throws -> Application {
    let output = try Process.output(of: [
      program, "app", "add", "benchmark", "--open", "--json", "--quiet", "--home", home.string,
    ])
    struct Report: Decodable { let publishKey, subscribeKey: String }
    let report = try JSONDecoder().decode(Report.self, from: Data(output.utf8))
    return Application(home: home, service: "pubnub:\(report.publishKey):\(report.subscribeKey)")
  }

  /// Starts our server.
  ///
  /// - Parameters:
  ///   - port: nil for a free one.
  ///   - identity: the certificate and the key for TLS, in PEM; nil for plain HTTP.
  func start(
    _ application: Application, port: UInt16? = nil,
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
      process: try ServerProcess(arguments, port: port), service: application.service)
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

  /// Publishes over some connections.
  ///
  /// - Returns: the acknowledged messages a second, and the seconds of the server's processor time for each.
  func publish(
    to server: Started, connections: Int, seconds: Double
  ) throws -> (rate: Double, processorSeconds: Double) {
    let before = try server.process.processorSeconds()
    let output = try Process.output(of: [
      load, "publish", server.service, "\(server.process.port)", "\(connections)", "\(seconds)",
    ])
    let processorSeconds = try server.process.processorSeconds() - before
    let figures = output.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
    guard figures.count == 2 else { throw BenchmarkError("the load generator failed") }
    return (figures[0] / figures[1], processorSeconds / figures[0])
  }
}
