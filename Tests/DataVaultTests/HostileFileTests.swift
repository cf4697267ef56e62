import DataVaultTesting
import FileLayer
import Glibc
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@testable import DataVault

/// Hostile files that are made to cost time or memory: they are refused at a bounded cost.
@Suite struct HostileFileTests {
  let home = TemporaryHome()

  /// Makes a sparse file: it needs no space, and reading it would take very long.
  private func makeLarge(_ path: FilePath) throws {
    let descriptor = Glibc.open(path.string, O_WRONLY | O_CREAT, 0o600)
    try #require(descriptor >= 0)
    #expect(ftruncate(descriptor, 1 << 40) == 0)
    Glibc.close(descriptor)
  }

  @Test func `a file of a terabyte is refused before it is read`() async throws {
    _ = try await home.store.createVault(with: credentials("p"))
    let exported = home.path.appending("exported")
    try makeLarge(exported)
    #expect(await code { _ = try await Vault.loadExportedVault(at: exported) } == .damaged)
    try makeLarge(home.file())
    #expect(await code { _ = try await FastTestVault.get(.messaging, in: home.store) } == .damaged)
    #expect(await code { try await Vault.delete(.messaging, in: home.store) } == .damaged)
    let target = InMemoryVaultStore()
    await expect(.damaged) { try await Vault.copy(.messaging, from: home.store, to: target) }
    // The owner can still delete such a file by force.
    try await Vault.delete(.messaging, in: home.store, force: true)
    #expect(try await !Vault.exists(.messaging, in: home.store))
  }

  @Test func `a record of attempts of a terabyte counts as none and is replaced`() async throws {
    _ = try await home.store.createVault(with: credentials("p"))
    try makeLarge(home.directory.appending("messaging.retry"))
    let vault = try await FastTestVault.get(.messaging, in: home.store)
    #expect(try await vault.status().failedAttemptCount == 0)
    #expect(await code { try await vault.unlock(with: credentials("wrong")) } == .wrongPassword)
    try await vault.unlock(with: credentials("p"))
    #expect(try #require(try home.store.readAttempts(.messaging)).count < 200)
  }

  @Test func `a file above the maximum size is refused before it is parsed`() {
    let file = [UInt8](repeating: 0, count: VaultFile.maximumByteCount + 1)
    let fileFault = #expect(throws: FormatFault.self) { _ = try VaultFile(parsing: file) }
    #expect(fileFault?.reason == "larger than the maximum of \(VaultFile.maximumByteCount) bytes")
    let text = file.span.bytes.extracting(first: VaultContents.maximumTextByteCount + 1)
    do throws(FormatFault) {
      _ = try VaultContents(parsing: text)
      Issue.record("it was taken")
    } catch {
      #expect(
        error.reason == "larger than the maximum of \(VaultContents.maximumTextByteCount) bytes")
    }
  }

  /// Text that is cheap to write and expensive to parse carelessly, in several shapes and any size.
  enum Bulk: String, CaseIterable, Sendable {
    case brackets, objects, string, escapes, members, numbers, slots, base64

    func head(_ count: Int) -> String {
      func many(_ text: String) -> String {
        String(repeating: text, count: count / text.utf8.count)
      }
      return switch self {
      case .brackets: "{\"key\":" + many("[")
      case .objects: "{\"key\":" + many("{\"a\":")
      case .string: "{\"key\":\"" + many("x") + "\",\"contents\":{},"
      case .escapes: "{\"key\":\"" + many("\\u0041") + "\",\"contents\":{},"
      case .members: "{\"key\":{" + many("\"a\":1,") + "\"a\":1},\"contents\":{},"
      case .numbers: "{\"key\":" + many("9") + ",\"contents\":{},"
      case .slots: "{\"key\":{\"protected\":\"\",\"recipients\":[" + many("{},") + "{}]},"
      case .base64: "{\"key\":{},\"contents\":{\"protected\":\"\",\"aad\":\"" + many("A") + "\"},"
      }
    }
  }

  @Test(arguments: Bulk.allCases)
  func `parsing time grows linearly with the text`(bulk: Bulk) throws {
    func cost(_ count: Int) -> Duration {
      let file = VaultFileBuilder.seal(bulk.head(count))
      return processorTime {
        #expect(throws: FormatFault.self) { _ = try VaultFile(parsing: file) }
      }
    }
    _ = cost(1 << 10)
    let small = max((0..<3).map { _ in cost(1 << 17) }.min() ?? .zero, .milliseconds(1))
    let large = (0..<2).map { _ in cost(1 << 19) }.min() ?? .zero
    #expect(large < small * 9, "\(small) and then \(large)")
  }

  /// Authentic contents from a hostile writer who has the keys.
  @Test func `reading time grows linearly with the number of items`() throws {
    func text(_ count: Int) -> [UInt8] {
      let items = (0..<count).map { "\"\(1_000_000 + $0)\":{\"string\":\"\"}" }
      let whole = String(decoding: Self.contents, as: UTF8.self)
        .replacing("ITEMS", with: items.joined(separator: ","))
      return Array(whole.utf8)
    }
    func cost(_ count: Int) throws -> Duration {
      let text = text(count)
      return try processorTime {
        let read = try VaultContents(parsing: text.span.bytes)
        #expect(read.items.entries.count == count)
      }
    }
    _ = try cost(10)
    let small = max(try cost(2000), .milliseconds(1))
    #expect(try cost(8000) < small * 9)
  }

  private static let contents = Array(
    (#"{"generation":1,"passwordSetAt":0,"policy":{"standardPassword":true,"#
      + #""minimumLength":8,"digit":false,"upper":false,"lower":false,"special":false,"#
      + #""minimumUniqueCharacters":0,"expirationDays":0,"lockTimeoutSeconds":0},"#
      + #""databases":null,"dataKeys":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8","items":{ITEMS}}"#)
      .utf8)
}
