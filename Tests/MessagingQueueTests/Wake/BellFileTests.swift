import Foundation
import Glibc
import MessagingQueue
import SystemPackage
import Testing

@Suite struct BellFileTests {
  let folder: URL
  let database: FilePath
  let bell: FilePath
  let file: BellFile

  init() throws {
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("bell-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    database = FilePath(folder.appendingPathComponent("messaging.db").path)
    bell = FilePath(database.string + "-bell")
    file = BellFile(besideDatabase: database)
    try Data([1]).write(to: folder.appendingPathComponent("messaging.db"))
  }

  private func withFolder(_ body: () throws -> Void) rethrows {
    defer { try? FileManager.default.removeItem(at: folder) }
    try body()
  }

  @Test func `every listener hears every ring, and nothing is written`() throws {
    try withFolder {
      let listeners = try [file.listen(), file.listen()]
      // The second began with a ring of its own.
      _ = listeners[0].wait(upTo: .milliseconds(1))
      for _ in 0..<3 {
        try file.ring()
        for listener in listeners { #expect(listener.wait(upTo: .seconds(30)) == .rang) }
      }
      #expect(listeners[0].wait(upTo: .milliseconds(1)) == .timedOut)
      #expect(try Data(contentsOf: URL(fileURLWithPath: bell.string)).isEmpty)
    }
  }

  @Test func `the bell has the permissions of the database`() throws {
    try withFolder {
      chmod(database.string, 0o640)
      try file.ring()
      var status = stat()
      #expect(stat(bell.string, &status) == 0)
      #expect(status.st_mode & 0o777 == 0o640)
    }
  }

  @Test func `a bell that is deleted, moved or replaced is noticed and made again`() throws {
    try withFolder {
      for damage: () -> CInt in [
        { unlink(bell.string) },
        { rename(bell.string, bell.string + "-aside") },
        { rename(bell.string + "-aside", bell.string) },
      ] {
        let listener = try file.listen()
        #expect(damage() == 0)
        #expect(listener.wait(upTo: .seconds(30)) == .lost)
        let next = try file.listen()
        try file.ring()
        #expect(next.wait(upTo: .seconds(30)) == .rang)
      }
    }
  }

  @Test func `a link, a pipe or a missing directory in its place is refused at once`() throws {
    withFolder {
      symlink("elsewhere", bell.string)
      #expect(throws: BellError.self) { try file.ring() }
      unlink(bell.string)
      mkfifo(bell.string, 0o600)
      #expect(throws: BellError.self) { try file.ring() }
      let nowhere = BellFile(besideDatabase: FilePath(folder.path + "/missing/messaging.db"))
      #expect(throws: BellError.self) { try nowhere.ring() }
      #expect(throws: BellError.self) { _ = try nowhere.listen() }
    }
  }

  @Test func `a ring is heard by another engine's bell at once`() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    var never = ChangeBell.Intervals()
    never.listening = .seconds(3600)
    never.deaf = .seconds(3600)
    let near = ChangeBell(device: file, intervals: never)
    let far = ChangeBell(device: BellFile(besideDatabase: database), intervals: never)
    // The first wait begins to listen, which rings.
    #expect(await far.nextRing(after: far.ringCount, within: .seconds(600)) == .rang)
    for _ in 0..<20 {
      try await Task.sleep(for: .milliseconds(1))
      let count = far.ringCount
      async let wake = far.nextRing(after: count, within: .seconds(600))
      near.ring()
      #expect(await wake == .rang)
    }
  }

  @Test func `an interruption ends the wait, also one that begins later`() throws {
    try withFolder {
      let listener = try file.listen()
      listener.interrupt()
      #expect(listener.wait(upTo: nil) == .interrupted)
    }
  }
}
