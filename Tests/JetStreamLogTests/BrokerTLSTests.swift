import BrokerCluster
import FileLayer
import JetStreamLog
import TestSupport
import Testing

/// TLS between nodes and brokers.
@Suite(.enabled(if: BrokerCluster.program != nil, Comment(rawValue: BrokerCluster.skipReason)))
struct BrokerTLSTests {
  private let scratch = ScratchFolder()

  private func openssl(_ arguments: String...) async throws {
    let folder = scratch.path("")
    let made = try await onBlockingThread("test.openssl") {
      try Program.run("/usr/bin/openssl", arguments, in: folder)
    }
    try #require(made.status == 0, "\(made.errors)")
  }

  /// Makes an authority, and a broker's certificate for a subject.
  private func makeCertificates(for subject: String) async throws -> BrokerCluster.Options {
    for authority in ["ca", "other"] {
      try await openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
        "2", "-subj", "/CN=\(authority)", "-keyout", "\(authority).key", "-out", "\(authority).pem")
    }
    try await openssl(
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
      "/CN=broker", "-addext", "subjectAltName=\(subject)", "-keyout", "broker.key", "-out",
      "broker.csr")
    try await openssl(
      "x509", "-req", "-in", "broker.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2",
      "-copy_extensions", "copy", "-out", "broker.pem")
    var options = BrokerCluster.Options()
    options.count = 1
    options.identity = (scratch.path("broker.pem"), scratch.path("broker.key"))
    return options
  }

  @Test func `a broker is used if the authority has signed for its host, and not otherwise`()
    async throws
  {
    let shard = try BrokerShard(await makeCertificates(for: "DNS:localhost"))
    let authority = scratch.contents(of: "ca.pem")
    let other = scratch.contents(of: "other.pem")
    let address = shard.cluster.addresses[0]
    let named = address.replacing("127.0.0.1", with: "localhost")
    let log = try shard.log {
      $0.addresses = [named]
      $0.authority = authority
    }
    try await eventually("the broker makes the stream") {
      do throws(LogError) {
        try log.provision(replicas: 1)
        return true
      } catch { return error.code == .streamExists }
    }
    try log.append([try shard.record(1)])
    #expect(try await log.all(1).count == 1)
    #expect(try log.status().version != nil)
    log.close()
    for (address, authority) in [(named, other), (named, nil), (address, authority)] {
      let log = try shard.log {
        $0.addresses = [address]
        $0.authority = authority
      }
      let error = #expect(throws: LogError.self) { try log.connect() }
      #expect(error?.code == .unreachable)
    }
  }
}
