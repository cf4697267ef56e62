import Foundation
import Glibc

/// An image of the writable memory of a process at one time.
public struct MemoryImage {
  private let bytes: Data

  private static let pageByteCount = 4096

  /// Reads an image that ``write(of:to:)`` has written.
  public init(readingFrom path: String) throws {
    bytes = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
  }

  /// The size of the image in bytes.
  public var byteCount: Int { bytes.count }

  /// Writes the writable pages of a process to a file, except pages of zeros; by default of this
  /// process.
  ///
  /// Pages that the loader mapped read-only contain no computed data. The copy goes through one
  /// buffer, which is wiped, because the next image would otherwise contain it.
  public static func write(of process: String = "self", to path: String) throws {
    // The file reports no size, so it is read to its end.
    guard let maps = try FileHandle(forReadingAtPath: "/proc/\(process)/maps")?.readToEnd() else {
      throw MemoryImageError()
    }
    let lines = String(decoding: maps, as: UTF8.self).split(separator: "\n")
    let memory = open("/proc/\(process)/mem", O_RDONLY | O_CLOEXEC)
    let image = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard memory >= 0, image >= 0,
      let buffer = mmap(
        nil, pageByteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      buffer != MAP_FAILED
    else { throw MemoryImageError() }
    defer {
      munmap(buffer, pageByteCount)
      close(memory)
      close(image)
    }
    for line in lines {
      let parts = line.split(separator: " ")
      let ends = parts[0].split(separator: "-").compactMap { UInt(String($0), radix: 16) }
      guard parts[1].hasPrefix("rw"), ends.count == 2, !line.contains("[v") else { continue }
      for address in stride(from: ends[0], to: ends[1], by: pageByteCount) {
        guard address != UInt(bitPattern: buffer),
          pread(memory, buffer, pageByteCount, off_t(address)) == pageByteCount
        else { continue }
        let words = UnsafeRawBufferPointer(start: buffer, count: pageByteCount)
        guard words.withMemoryRebound(to: UInt64.self, { words in words.contains { $0 != 0 } })
        else {
          continue
        }
        guard Glibc.write(image, buffer, pageByteCount) == pageByteCount else {
          throw MemoryImageError()
        }
      }
    }
    memset(buffer, 0, pageByteCount)
  }

  /// Whether the image contains these bytes.
  public func contains(_ pattern: [UInt8]) -> Bool {
    bytes.range(of: Data(pattern)) != nil
  }

  /// The keys of all expanded AES-256 keys: 32 bytes followed by their expansion (FIPS 197, 5.2).
  ///
  /// This also finds keys that no test knows: those of temporary files, and those that XAES
  /// derives.
  public func expandedKeys() -> Set<[UInt8]> {
    let box = AESKeyExpansion.substitution
    var found: Set<[UInt8]> = []
    bytes.withUnsafeBytes { bytes in
      box.withUnsafeBufferPointer { box in
        var offset = 0
        // OpenSSL's contexts are aligned to 16, and schedules within them at least to 4.
        while offset + 64 <= bytes.count {
          let isFirstByteRight =
            bytes[offset + 32] == bytes[offset] ^ box[Int(bytes[offset + 29])] ^ 1
          if isFirstByteRight, AESKeyExpansion.follows(bytes, offset, box) {
            let key = Array(bytes[offset..<offset + 32])
            if Set(key).count > 4 { found.insert(key) }
          }
          offset += 4
        }
      }
    }
    return found
  }
}

private struct MemoryImageError: Error {}

/// The first step of AES-256's key expansion: FIPS 197, 5.2.
private enum AESKeyExpansion {
  /// Whether the third group of four words follows from the first two.
  static func follows(
    _ bytes: UnsafeRawBufferPointer, _ offset: Int, _ box: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    for index in 0..<4 {
      let turned = box[Int(bytes[offset + 28 + (index + 1) % 4])]
      let constant: UInt8 = index == 0 ? 1 : 0
      guard bytes[offset + 32 + index] == bytes[offset + index] ^ turned ^ constant else {
        return false
      }
    }
    return (4..<16).allSatisfy { index in
      bytes[offset + 32 + index] == bytes[offset + index] ^ bytes[offset + 28 + index]
    }
  }

  /// The S-box: FIPS 197, 5.1.1.
  static let substitution: [UInt8] = {
    var box = [UInt8](repeating: 0x63, count: 256)
    var power: UInt8 = 1
    var inverse: UInt8 = 1
    repeat {
      power ^= power << 1 ^ (power & 0x80 != 0 ? 0x1B : 0)  // times 3
      inverse ^= inverse << 1
      inverse ^= inverse << 2
      inverse ^= inverse << 4
      if inverse & 0x80 != 0 { inverse ^= 0x09 }  // divided by 3
      let turned = [1, 2, 3, 4].map { inverse << $0 | inverse >> (8 - $0) }
      box[Int(power)] = turned.reduce(inverse ^ 0x63, ^)
    } while power != 1
    return box
  }()
}
