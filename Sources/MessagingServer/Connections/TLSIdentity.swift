internal import NIOSSL
internal import Synchronization

/// The certificate chain and the private key of a server, read from PEM files and read again on request.
///
/// A connection keeps the certificate with which it began, so that a rotation interrupts none.
package final class TLSIdentity: Sendable {
  private let certificatePath: String
  private let keyPath: String
  private let current: Mutex<NIOSSLContext>

  /// Reads both files.
  ///
  /// - Throws: ``ServerError`` that names the file.
  package init(certificatePath: String, keyPath: String) throws(ServerError) {
    self.certificatePath = certificatePath
    self.keyPath = keyPath
    current = Mutex(try Self.read(certificatePath, keyPath))
  }

  /// What new connections use.
  var context: NIOSSLContext { current.withLock { $0 } }

  /// Reads the files again; after an error the former ones stay in use.
  package func reload() throws(ServerError) {
    let context = try Self.read(certificatePath, keyPath)
    current.withLock { $0 = context }
  }

  private static func read(
    _ certificatePath: String, _ keyPath: String
  ) throws(ServerError) -> NIOSSLContext {
    do {
      let chain = try NIOSSLCertificate.fromPEMFile(certificatePath)
      let key = try NIOSSLPrivateKey(file: keyPath, format: .pem)
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
      configuration.minimumTLSVersion = .tlsv12
      // Of TLS 1.2, what RFC 9325 (4.2) recommends: ephemeral keys and authenticated encryption.
      configuration.cipherSuites = "ECDHE+AESGCM:ECDHE+CHACHA20"
      // A client that is offered h2 speaks it; this server does not.
      configuration.applicationProtocols = ["http/1.1"]
      return try NIOSSLContext(configuration: configuration)
    } catch {
      throw ServerError(
        .invalidCertificate,
        "the certificate \(certificatePath) and the key \(keyPath) cannot be used: \(error)",
        hint: "give PEM files of a chain, the server's certificate first, and of its own key")
    }
  }
}
