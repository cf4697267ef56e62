import Foundation
import TestSupport
import Testing

@testable import MessagingServer

/// A private authority of a test, made by openssl: its certificate is `ca.pem`, and the last that it signed
/// `server.pem`, with `server.key`.
struct TestAuthority {
  let scratch = ScratchFolder()

  /// The file of the authority's certificate.
  var path: String { scratch.path("ca.pem") }

  init() async throws {
    let made = try await openssl([
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
      "2", "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem",
    ])
    try #require(made.status == 0, "\(made.errors)")
  }

  /// Runs openssl in the folder of the certificates.
  func openssl(_ arguments: [String], input: String = "") async throws -> Program {
    let folder = scratch.path("")
    return try await PubNubClient.onBlockingThread {
      try Program.run("/usr/bin/openssl", arguments, input: Array(input.utf8), in: folder)
    }
  }

  /// Signs a certificate with a common name, and puts it in the place of the last one.
  ///
  /// - Parameter subject: for whom it is: `IP:127.0.0.1` or `DNS:name`.
  func makeCertificate(_ name: String, for subject: String = "IP:127.0.0.1") async throws {
    let request = try await openssl([
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
      "/CN=\(name)", "-addext", "subjectAltName=\(subject)", "-keyout", "server.key", "-out",
      "server.csr",
    ])
    try #require(request.status == 0, "\(request.errors)")
    let signed = try await openssl([
      "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2",
      "-copy_extensions", "copy", "-out", "server.pem",
    ])
    try #require(signed.status == 0, "\(signed.errors)")
  }

  /// The last certificate and its key.
  func identity() throws -> TLSIdentity {
    try TLSIdentity(
      certificatePath: scratch.path("server.pem"), keyPath: scratch.path("server.key"))
  }
}
