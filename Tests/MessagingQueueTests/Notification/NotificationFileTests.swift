import FileLayer
import Foundation
import Glibc
import MessagingQueue
import SystemPackage
import TestSupport
import Testing

@Suite struct NotificationFileTests {
  let folder = ScratchFolder()
  let database: FilePath
  let notifier: FilePath
  let file: NotificationFile

  init() throws {
    database = folder("messaging.db")
    notifier = FilePath(database.string + "-notify")
    file = NotificationFile(besideDatabase: database)
    try folder.file("messaging.db", [1])
  }

  @Test func `every listener gets every notification, and nothing is written`() throws {
    let listeners = try [file.listen(), file.listen()]
    // The second listener sent a notification when it began.
    _ = listeners[0].wait(upTo: .milliseconds(1))
    for _ in 0..<3 {
      try file.notify()
      for listener in listeners { #expect(listener.wait(upTo: .seconds(30)) == .changed) }
    }
    #expect(listeners[0].wait(upTo: .milliseconds(1)) == .timedOut)
    #expect(try Data(contentsOf: URL(fileURLWithPath: notifier.string)).isEmpty)
  }

  @Test func `the notification file has the permissions of the database`() throws {
    chmod(database.string, 0o640)
    try file.notify()
    var status = stat()
    #expect(stat(notifier.string, &status) == 0)
    #expect(status.st_mode & 0o777 == 0o640)
  }

  @Test func `a deleted, moved or replaced notification file is noticed and made again`() throws {
    for damage: () -> CInt in [
      { unlink(notifier.string) },
      { rename(notifier.string, notifier.string + "-aside") },
      { rename(notifier.string + "-aside", notifier.string) },
    ] {
      let listener = try file.listen()
      #expect(damage() == 0)
      #expect(listener.wait(upTo: .seconds(30)) == .lost)
      let next = try file.listen()
      try file.notify()
      #expect(next.wait(upTo: .seconds(30)) == .changed)
    }
  }

  @Test func `a link, a pipe or a missing directory in its place is refused`() throws {
    symlink("elsewhere", notifier.string)
    #expect(throws: FileError.self) { try file.notify() }
    unlink(notifier.string)
    mkfifo(notifier.string, 0o600)
    #expect(throws: FileError.self) { try file.notify() }
    let nowhere = NotificationFile(
      besideDatabase: folder("missing/messaging.db"))
    #expect(throws: FileError.self) { try nowhere.notify() }
    #expect(throws: FileError.self) { _ = try nowhere.listen() }
  }

  @Test func `a notification reaches another engine's notifier immediately`() async throws {
    var never = ChangeNotifier.Intervals()
    never.fallbackCheck = .seconds(3600)
    never.polling = .seconds(3600)
    let near = ChangeNotifier(transport: file, intervals: never)
    let far = ChangeNotifier(
      transport: NotificationFile(besideDatabase: database), intervals: never)
    // The first wait begins to listen, which sends a notification.
    #expect(await far.waitForChange(after: far.generation, within: .seconds(600)) == .changed)
    for _ in 0..<20 {
      let count = far.generation
      async let wake = far.waitForChange(after: count, within: .seconds(600))
      near.notify()
      #expect(await wake == .changed)
    }
  }

  @Test func `an interruption ends the wait, also one that begins later`() throws {
    let listener = try file.listen()
    listener.interrupt()
    #expect(listener.wait(upTo: nil) == .interrupted)
  }
}
