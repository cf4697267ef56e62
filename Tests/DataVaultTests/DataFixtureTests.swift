import FileLayer
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@testable import DataVault

/// The sealed data in `Fixtures/data`.
@Suite struct DataFixtureTests {
  private static let directory = FilePath(Repository.path("Fixtures/data"))

  private static func names(_ folder: String) -> [String] {
    let names = (try? LinuxFileSystem().entries(of: directory.appending(folder))) ?? []
    return names.map { String($0.dropLast(".sealed".count)) }
  }

  /// The plaintext that a reader with the keys gets from a file.
  private func open(_ name: String, context: String = "") throws -> [UInt8] {
    let path = Self.directory.appending("\(name).sealed")
    let sealed = try #require(try LinuxFileSystem().read(path, maximumByteCount: 1 << 20))
    let text = Array("\"\(Base64.url(Array(0x20...0x5F)))\"".utf8)
    let keys = try DataKeys(parsing: text.span.bytes, 0..<text.count)
    let header = try DataHeader(parsing: Array(sealed.prefix(DataHeader.byteCount)))
    guard var decryptor = try keys.decryptor(for: header, context: Array(context.utf8)) else {
      throw VaultError(.keyMissing, "another vault's")
    }
    let body = Array(sealed.dropFirst(DataHeader.byteCount))
    let first = try decryptor.update(body.span.bytes).array()
    return first + (try decryptor.finish().array())
  }

  @Test(arguments: names("positive"))
  func `sealed data of version 1 opens`(name: String) throws {
    let opened = try open("positive/\(name)", context: name == "with-a-context" ? "context" : "")
    let expected =
      switch name {
      case "empty": [UInt8]()
      case "two-chunks": (0..<65536).map { UInt8($0 % 251) } + Array("end".utf8)
      default: Array("sealed by a vault".utf8)
      }
    #expect(opened == expected)
  }

  @Test(arguments: names("negative"))
  func `sealed data with one fault is refused with that fault's error`(name: String) async throws {
    let expected: VaultError.Code =
      switch name {
      case "cut-in-the-header", "cut-behind-the-header", "cut-between-chunks",
        "not-marked-as-last":
        .truncated
      case "another-magic": .notSealedData
      case "newer-version", "draft-version": .newerVersion
      case "key-of-another-vault": .keyMissing
      default: .damaged
      }
    #expect(await code { _ = try open("negative/\(name)") } == expected)
  }

  @Test func `no fixture is missing`() {
    #expect(Self.names("positive").count == 5)
    #expect(Self.names("negative").count == 18)
  }
}
