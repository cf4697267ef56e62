import Foundation
@_spi(Testing) import MessagingQueue
import SystemPackage

/// A `FILE.partial` with any bytes and of any file type, which an export continues.
///
/// If the export succeeds, an import must accept its file, and each line must come from the partial
/// file or from the database. If it refuses, the partial file must not change. No other file must
/// change.
final class PartialFileFixture {
  private let folder: FuzzFolder
  private let engine: MessagingEngine
  private var target: FilePath { FilePath(folder.path + "/x.ndjson") }
  private let whole: [UInt8]
  private let lines: Set<[UInt8]>

  init() throws {
    folder = try FuzzFolder()
    let path = FilePath(folder.path + "/plain.db")
    engine = try Self.wait { try await MessagingEngine.start(unencryptedAt: path) }
    let engine = engine
    try Self.wait {
      let channel = try Channel("orders")
      try await engine.addConsumer(Consumer("audit"), of: channel)
      for number in 0..<6 {
        _ = try await engine.publish([
          Message(channel: channel, payload: Array("message \(number)".utf8))
        ])
      }
    }
    let first = FilePath(folder.path + "/whole.ndjson")
    _ = try Self.wait { try await engine.exportMessages(to: first) }
    whole = folder.contents("whole.ndjson") ?? []
    lines = Set(whole.split(separator: 0x0A).map(Array.init))
    require(lines.count > 6, "the export has too few lines")
    // Cut off after a message. This export must continue: otherwise the harness would test nothing.
    let cut = Array(whole.prefix(whole.count * 2 / 3))
    require(put(cut, kind: 0) && export(), "an unfinished export does not continue")
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    folder.remove("x.ndjson")
    folder.remove("x.ndjson.partial")
    var partial = edits.mode & 1 == 0 ? whole : Array(input.dropFirst())
    if edits.mode & 1 == 0 { edits.apply(to: &partial) }
    folder.put("other", partial)
    let isOwn = put(partial, kind: edits.mode >> 1 & 3)

    let isFinished = export()
    let finished = folder.contents("x.ndjson")
    require(isFinished == (finished != nil), "an export gives no report")
    require(folder.contents("other") == partial, "another file is changed")
    guard let finished else {
      require(folder.contents("x.ndjson.partial") == partial, "a refusal changes the file")
      return
    }
    require(isOwn, "a foreign file is accepted")
    require(ExchangeProbe.lineCount(ofFileAt: target) != nil, "an import refuses the export")
    let found = partial.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast()
    let allowed = lines.union(found.map(Array.init))
    for line in finished.split(separator: 0x0A) where !allowed.contains(Array(line)) {
      let text = String(decoding: line, as: UTF8.self)
      // These lines contain the time of the export and a new id.
      require(
        ["export", "resumed", "end"].contains { text.hasPrefix(#"{"record":"\#($0)""#) },
        "a line is neither in the file nor in the database: \(text)")
    }
  }

  /// Writes the partial file and returns whether an export can continue it.
  private func put(_ bytes: [UInt8], kind: UInt8) -> Bool {
    let (path, other) = (folder.path + "/x.ndjson.partial", folder.path + "/other")
    switch kind {
    case 1: link(other, path)
    case 2: symlink(other, path)
    default:
      folder.put("x.ndjson.partial", bytes)
      chmod(path, kind == 3 ? 0o666 : 0o600)
    }
    return kind == 0
  }

  /// Runs an export and returns whether it succeeded.
  private func export() -> Bool {
    let (engine, target) = (engine, target)
    return (try? Self.wait { try await engine.exportMessages(to: target) }) != nil
  }

  private static func wait<Value: Sendable>(
    _ work: @escaping @Sendable () async throws -> Value
  ) throws -> Value {
    let end = DispatchSemaphore(value: 0)
    let result = Answer<Value>()
    Task.detached {
      do { result.value = .success(try await work()) } catch { result.value = .failure(error) }
      end.signal()
    }
    end.wait()
    guard let value = result.value else { preconditionFailure("the task gives no result") }
    return try value.get()
  }

  func remove() { folder.removeAll() }
}

/// The result of a task, for the thread that waits for it.
// @unchecked: the value is written before the signal and read after it.
private final class Answer<Value>: @unchecked Sendable {
  var value: Result<Value, any Error>?
}
