import CLoadSystem
import Glibc

/// TLS for connections to a server on this machine, whose certificate is not verified.
final class TLSClient {
  private let context: OpaquePointer

  init() throws {
    guard let context = SSL_CTX_new(TLS_client_method()) else { throw LoadError("no TLS") }
    self.context = context
  }

  func connection(on descriptor: Int32) throws -> TLSConnection {
    guard let session = SSL_new(context), SSL_set_fd(session, descriptor) == 1 else {
      throw LoadError("no TLS")
    }
    return TLSConnection(session)
  }
}

/// The TLS of one connection.
final class TLSConnection {
  private let session: OpaquePointer

  fileprivate init(_ session: OpaquePointer) { self.session = session }

  deinit {
    SSL_free(session)
  }

  /// Waits for the handshake, because it is not measured.
  func shakeHands(on descriptor: Int32) -> Bool {
    let flags = fcntl(descriptor, F_GETFL)
    _ = fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK)
    defer { _ = fcntl(descriptor, F_SETFL, flags) }
    return SSL_connect(session) == 1
  }

  func write(_ bytes: [UInt8]) -> Int { Int(SSL_write(session, bytes, Int32(bytes.count))) }

  /// As recv(2).
  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = SSL_read(session, buffer.baseAddress, Int32(buffer.count))
    if count <= 0, SSL_get_error(session, count) == SSL_ERROR_WANT_READ { errno = EAGAIN }
    return Int(count)
  }
}
