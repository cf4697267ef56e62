internal import NIOSSL

/// What an error of TLS says of a server.
enum TLSFailure {
  private static let lostHandshakes: [NIOSSLError] = [
    .handshakeFailed(.sslError([.eofDuringHandshake])), .handshakeFailed(.zeroReturn),
    .handshakeFailed(.syscallError),
  ]

  /// Whether an error before the end of the handshake says that the server did not prove who it is.
  ///
  /// It does not if the connection was lost, as it is when a server ends.
  static func isDistrust(_ error: any Error) -> Bool {
    switch error {
    case let error as NIOSSLError: !lostHandshakes.contains(error)
    case is NIOSSLExtraError, is BoringSSLError: true
    default: false
    }
  }
}
