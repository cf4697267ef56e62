import FileLayer
import FileRecording
import SystemPackage
import Testing

@Suite struct DiskReplayTests {
  private let a: FilePath = "/d/a"
  private let b: FilePath = "/d/b"

  private func files(
    _ events: [FileEvent], _ loss: DiskReplay.Loss, from initial: [FilePath: [UInt8]] = [:]
  ) -> [FilePath: [UInt8]] {
    DiskReplay(events, initialFiles: initial).files(after: loss)
  }

  @Test func `a killed process loses nothing`() {
    let events: [FileEvent] = [
      .create(a), .write(a, offset: 0, bytes: [1, 2, 3]), .write(a, offset: 1, bytes: [9]),
      .rename(a, to: b),
    ]
    #expect(files(events, .nothing) == [b: [1, 9, 3]])
    #expect(files(events, .everythingUnsynchronized) == [:])
  }

  @Test func `contents need an fsync of the file, names one of the directory`() {
    let written: [FileEvent] = [.create(a), .write(a, offset: 0, bytes: [1])]
    #expect(files(written + [.synchronizeDirectory("/d")], .everythingUnsynchronized) == [a: []])
    #expect(files(written + [.synchronize(a)], .everythingUnsynchronized) == [:])
    #expect(
      files(written + [.synchronize(a), .synchronizeDirectory("/d")], .everythingUnsynchronized)
        == [a: [1]])
  }

  @Test func `a rename does not make contents durable`() {
    let events: [FileEvent] = [
      .create(b), .write(b, offset: 0, bytes: [2]), .rename(b, to: a),
      .synchronizeDirectory("/d"),
    ]
    #expect(files(events, .everythingUnsynchronized, from: [a: [1]]) == [a: []])
    #expect(files(Array(events.dropLast()), .everythingUnsynchronized, from: [a: [1]]) == [a: [1]])
    #expect(files(Array(events.dropLast()), .unsynchronizedContents, from: [a: [1]]) == [a: []])
  }

  @Test func `initial files are durable`() {
    #expect(files([], .everythingUnsynchronized, from: [a: [1]]) == [a: [1]])
    let overwritten: [FileEvent] = [.write(a, offset: 0, bytes: [7])]
    #expect(files(overwritten, .everythingUnsynchronized, from: [a: [1, 2]]) == [a: [1, 2]])
    #expect(files(overwritten, .nothing, from: [a: [1, 2]]) == [a: [7, 2]])
  }

  @Test func `a removed name comes back unless the directory was synchronized`() {
    #expect(files([.remove(a)], .nothing, from: [a: [1]]) == [:])
    #expect(files([.remove(a)], .everythingUnsynchronized, from: [a: [1]]) == [a: [1]])
    #expect(
      files([.remove(a), .synchronizeDirectory("/d")], .everythingUnsynchronized, from: [a: [1]])
        == [:])
  }

  @Test func `synchronizing a directory affects only its own names`() {
    let events: [FileEvent] = [
      .create(a), .create("/d/below/c"), .create("/other/c"), .synchronizeDirectory("/d"),
    ]
    #expect(files(events, .everythingUnsynchronized) == [a: []])
  }

  @Test func `a new directory is durable after its parent is synchronized`() {
    let events: [FileEvent] = [
      .createDirectory("/d/new"), .create("/d/new/c"), .synchronize("/d/new/c"),
      .synchronizeDirectory("/d/new"),
    ]
    #expect(files(events, .everythingUnsynchronized) == [:])
    #expect(files(events, .nothing) == ["/d/new/c": []])
    #expect(
      files(events + [.synchronizeDirectory("/d")], .everythingUnsynchronized)
        == ["/d/new/c": []])
  }

  @Test func `creating a directory that holds files changes nothing`() {
    #expect(files([.createDirectory("/d")], .everythingUnsynchronized, from: [a: [1]]) == [a: [1]])
  }

  @Test func `a file grows with zeros and shrinks`() {
    let grown: [FileEvent] = [.create(a), .write(a, offset: 3, bytes: [1])]
    #expect(files(grown, .nothing) == [a: [0, 0, 0, 1]])
    #expect(files(grown + [.truncate(a, byteCount: 2)], .nothing) == [a: [0, 0]])
    #expect(files(grown + [.truncate(a, byteCount: 6)], .nothing) == [a: [0, 0, 0, 1, 0, 0]])
  }

  @Test func `locks, notes and owners change no file`() {
    let events: [FileEvent] = [
      .lock("/d/lock"), .mark("x"), .changeOwner(a, FileOwner(userID: 1, groupID: 1)),
      .unlock("/d/lock"),
    ]
    #expect(files(events, .nothing, from: [a: [1]]) == [a: [1]])
  }
}
