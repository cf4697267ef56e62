import Glibc
import Testing

@testable import VaultCrypto

/// Tests that a failed call leaves no entry in OpenSSL's error queue.
///
/// The next user of the thread would take it for a failure of its own: SSL_get_error(3).
@Suite struct ErrorQueueTests {
  @Test func `a failed call leaves no entry in the thread's error queue`() throws {
    let half = RandomSource.system.bytes(count: 32)
    #expect(throws: CryptoError.self) {
      _ = try HKDF.sha512(
        inputKey: SecretBytes(copying: half), salt: [1],
        info: [UInt8](repeating: 7, count: 100_000), byteCount: 32)
    }
    #expect(try newestError() == 0)
    let wrapped = [UInt8](repeating: 1, count: 40)
    #expect(throws: CryptoError.self) {
      _ = try AES256KeyWrap.unwrap(wrapped, with: SecretBytes(copying: half))
    }
    #expect(try newestError() == 0)
  }

  /// The newest error, looked up by symbol name because only VaultCrypto imports OpenSSL.
  private func newestError() throws -> UInt {
    let symbol = try #require(dlsym(nil, "ERR_peek_last_error"))
    return unsafeBitCast(symbol, to: (@convention(c) () -> UInt).self)()
  }
}
