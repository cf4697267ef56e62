import Foundation
import Glibc
import TestSupport
import Testing

@testable import VaultCrypto

@Suite struct LockedMemoryTests {
  @Test func `a secret is excluded from core dumps`() throws {
    #expect(try flagsOfSecret().contains("dd"))
  }

  @Test(.enabled(if: LockedMemory.canLock, "RLIMIT_MEMLOCK lets nothing be locked here"))
  func `a secret is locked against swapping`() throws {
    #expect(try flagsOfSecret().contains("lo"))
  }

  @Test func `a refused memory lock clears isComplete, and the secret still works`() async {
    await #expect(processExitsWith: .success) {
      guard LockedMemory.forbidLocking() else { exit(2) }
      guard LockedMemory.isComplete else { exit(3) }
      let secret = SecretBytes(copying: [1, 2, 3])
      guard secret.array() == [1, 2, 3] else { exit(4) }
      guard !LockedMemory.isComplete else { exit(5) }
      exit(0)
    }
  }

  @Test func `a granted memory lock leaves isComplete true`() async {
    await #expect(processExitsWith: .success) {
      if !LockedMemory.canLock { exit(0) }
      let secret = SecretBytes(copying: [1, 2, 3])
      guard secret.byteCount == 3, LockedMemory.isComplete else { exit(2) }
      exit(0)
    }
  }

  /// The VmFlags of the mapping around a secret, from `/proc/self/smaps`.
  private func flagsOfSecret() throws -> Set<Substring> {
    let secret = SecretBytes.random(byteCount: 5000)
    return try secret.withUnsafeBytes { memory in
      try memoryFlags(at: UInt(bitPattern: memory.baseAddress))
    }
  }

  private func memoryFlags(at address: UInt) throws -> Set<Substring> {
    var isInside = false
    for line in try ProcFile.text("/proc/self/smaps").split(separator: "\n") {
      let bounds = line.prefix { $0 != " " }.split(separator: "-")
      if bounds.count == 2, let low = UInt(bounds[0], radix: 16),
        let high = UInt(bounds[1], radix: 16)
      {
        isInside = (low..<high).contains(address)
      } else if isInside, line.hasPrefix("VmFlags:") {
        return Set(line.dropFirst("VmFlags:".count).split(separator: " "))
      }
    }
    return []
  }
}

extension LockedMemory {
  static var canLock: Bool {
    let page = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let page, page != MAP_FAILED else { return false }
    defer { munmap(page, 4096) }
    return mlock(page, 4096) == 0
  }

  /// Removes this process's right to lock memory; root drops its rights for that.
  static func forbidLocking() -> Bool {
    var none = rlimit(rlim_cur: 0, rlim_max: 0)
    guard setrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &none) == 0 else {
      return false
    }
    return geteuid() != 0 || setuid(65534) == 0
  }
}
