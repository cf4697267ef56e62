import Synchronization
import TestSupport
import Testing

@testable import VaultCrypto

@Suite struct SecretBytesTests {
  /// The contents of released memory just before the system got it back.
  final class Releases: Sendable {
    struct Release {
      let address: UInt
      let byteCount: Int
      let isWiped: Bool
    }

    private let releases = Mutex<[Release]>([])

    var all: [Release] { releases.withLock { $0 } }

    func watch<R>(_ body: () throws -> R) rethrows -> R {
      try LockedMemory.$observeRelease.withValue(
        { memory in
          let release = memory.withUnsafeBytes { memory in
            Release(
              address: UInt(bitPattern: memory.baseAddress), byteCount: memory.count,
              isWiped: memory.allSatisfy { $0 == 0 })
          }
          self.releases.withLock { $0.append(release) }
        }, operation: body)
    }
  }

  @Test(arguments: [0, 1, 32, 4096, 4097, 100_000])
  func `a secret is wiped over its whole capacity before its memory is released`(_ byteCount: Int) {
    let releases = Releases()
    let address = releases.watch {
      let secret = SecretBytes(byteCount: byteCount) { memory in
        memory.initializeMemory(as: UInt8.self, repeating: 0xA5)
      }
      return secret.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
    }
    #expect(releases.all.count == 1)
    #expect(releases.all.first?.address == address)
    #expect(releases.all.first?.byteCount == max(1, (byteCount + 4095) / 4096) * 4096)
    #expect(releases.all.first?.isWiped == true)
  }

  @Test func `a secret is wiped when its initialization fails`() {
    struct Refusal: Error {}
    let releases = Releases()
    #expect(throws: Refusal.self) {
      try releases.watch {
        _ = try SecretBytes(byteCount: 32) { memory in
          memory.initializeMemory(as: UInt8.self, repeating: 0xA5)
          throw Refusal()
        }
      }
    }
    #expect(releases.all.map(\.isWiped) == [true])
  }

  @Test func `a failed unwrap wipes and releases all its secrets`() throws {
    let wrapped = try AES256KeyWrap.wrap(
      SecretBytes.random(byteCount: 32), with: SecretBytes.random(byteCount: 32))
    let releases = Releases()
    _ = releases.watch {
      #expect(throws: CryptoError.self) {
        _ = try AES256KeyWrap.unwrap(wrapped, with: SecretBytes.random(byteCount: 32))
      }
    }
    #expect(releases.all.map(\.isWiped) == [true, true])  // the wrapping key and the scratch space
  }

  @Test func `a cipher wipes and releases all its secrets`() throws {
    let releases = Releases()
    try releases.watch {
      let cipher = try XAES256GCM(key: SecretBytes.random(byteCount: 32))
      _ = try cipher.sealed([1, 2, 3], nonce: [UInt8](repeating: 1, count: 24), aad: [])
    }
    #expect(releases.all.count >= 3)
    #expect(!releases.all.contains { !$0.isWiped })
  }

  @Test func `a new secret holds zeros`() {
    let secret = SecretBytes(zeroCount: 5000)
    #expect(secret.array() == [UInt8](repeating: 0, count: 5000))
    let untouched = SecretBytes(byteCount: 10) { _ in }
    #expect(untouched.array() == [UInt8](repeating: 0, count: 10))
  }

  @Test func `copies are independent`() {
    var original = SecretBytes(copying: [1, 2, 3])
    let copy = original.copy()
    let part = original.copy(1..<3)
    original.withUnsafeMutableBytes { $0[1] = 9 }
    #expect(original.array() == [1, 9, 3])
    #expect(copy.array() == [1, 2, 3])
    #expect(part.array() == [2, 3])
  }

  @Test func `random(from:) uses the given source`() {
    let counting = RandomSource { target in
      for index in target.indices { target[index] = UInt8(truncatingIfNeeded: index) }
    }
    let secret = SecretBytes.random(byteCount: 300, from: counting)
    #expect(secret.array() == (0..<300).map { UInt8(truncatingIfNeeded: $0) })
  }

  @Test func `isEqual() compares lengths and contents`() {
    let secret = SecretBytes(copying: [1, 2, 3])
    let same = SecretBytes.isEqual(secret, SecretBytes(copying: [1, 2, 3]))
    let otherByte = SecretBytes.isEqual(secret, SecretBytes(copying: [1, 2, 4]))
    let shorter = SecretBytes.isEqual(secret, SecretBytes(copying: [1, 2]))
    let longer = SecretBytes.isEqual(secret, SecretBytes(copying: [1, 2, 3, 0]))
    let empty = SecretBytes.isEqual(SecretBytes(copying: []), SecretBytes(copying: []))
    #expect(same && !otherByte && !shorter && !longer && empty)
  }
}

@Suite struct WipeTests {
  @Test func `wiping an array leaves zeros`() {
    var bytes = [UInt8](repeating: 7, count: 100)
    wipe(&bytes)
    #expect(bytes == [UInt8](repeating: 0, count: 100))
    var none: [UInt8] = []
    wipe(&none)
    #expect(none == [])
  }
}

/// Runs the program that checks memory as the system gets it back.
///
/// `scripts/test` runs its release build; this suite runs it in the configuration of the tests.
@Suite struct MemoryWipeTests {
  @Test func `every secret is wiped before its memory is released to the system`() throws {
    let program = try Program.run(Program.built("MemoryWipeTest"))
    #expect(program.status == 0, "\(program.text)")
    #expect(program.text.contains("not wiped: 0; a control was caught"))
  }
}
