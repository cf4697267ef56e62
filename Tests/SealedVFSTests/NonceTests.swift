import CSQLite
import FaultVFS
import FileLayer
import FileRecording
import Foundation
import SystemPackage
import Testing
import VaultCrypto

@testable import SealedVFS

/// Nonces are unique under one key in all disk writes, except for pages that a checkpoint copies.
@Suite struct NonceTests {
  /// Sealed pages by their nonce; a nonce can appear again only with an identical page.
  private struct Ledger {
    var seen: [[UInt8]: [UInt8]] = [:]
    var copyCount = 0
    var repeatCount = 0

    /// The number of nonces that no other one follows.
    var runCount: Int {
      seen.keys.count { seen[NonceSequenceTests.successor(of: $0)] == nil }
    }

    mutating func note(_ nonce: ArraySlice<UInt8>, of sealed: [UInt8]) {
      guard let before = seen.updateValue(sealed, forKey: Array(nonce)) else { return }
      if before == sealed { copyCount += 1 } else { repeatCount += 1 }
    }
  }

  @Test func `only a page that a checkpoint copies repeats a nonce in a large workload`() throws {
    let place = TemporaryDatabase()
    let recorder = FileRecorder()
    try place.register(over: RecordingVFS(recorder).name)
    let (first, second) = (try place.open(), try place.open())
    for mode in ["DELETE", "WAL", "TRUNCATE", "WAL"] {
      second.close()
      try first.run("PRAGMA journal_mode = \(mode); PRAGMA cache_size = 10")
      try first.run("PRAGMA synchronous = \(mode == "TRUNCATE" ? "OFF" : "NORMAL")")
      let other = try place.open()
      for round in 0..<6 {
        let writer = round % 2 == 0 ? first : other
        try writer.run("BEGIN; DROP TABLE IF EXISTS t")
        try writer.fill(400)
        try writer.run("UPDATE t SET text = text || '!'; COMMIT")
        try writer.run("BEGIN; UPDATE t SET text = 'x'; ROLLBACK; DELETE FROM t WHERE id % 9 = 0")
      }
      other.close()
    }
    try first.run("VACUUM")
    first.close()
    var ledger = Ledger()
    for event in recorder.events {
      guard case .write(let path, let offset, let bytes) = event else { continue }
      let isJournal = path == place.journal
      if path == place.log && bytes.count >= 4120 {
        for start in stride(from: 24, to: bytes.count, by: 4120) {
          let page = Array(bytes[start..<start + 4096])
          ledger.note(page[4056..<4080], of: page)
        }
      } else if bytes.count == 4096,
        !isJournal || offset % 512 == 4 || bytes[4056..<4080].contains(where: { $0 != 0 })
      {
        ledger.note(bytes[4056..<4080], of: bytes)
      } else if isJournal, [512, 68].contains(bytes.count),
        bytes[28..<52].contains(where: { $0 != 0 })
      {
        ledger.note(bytes[28..<52], of: Array(bytes.prefix(68)))
      }
    }
    #expect(ledger.seen.count > 2500)
    #expect(ledger.copyCount > 50)  // checkpoints
    #expect(ledger.repeatCount == 0)
    #expect(ledger.runCount > 48)
  }

  @Test func `a new nonce prefix is drawn after the last nonce of a prefix`() {
    let source = RandomSource { target in
      for index in target.indices { target[index] = .random(in: 0...255) }
    }
    var nonces = NonceSequence(random: source)
    let memory = UnsafeMutableRawPointer.allocate(byteCount: 24, alignment: 8)
    defer { memory.deallocate() }
    func prefix() -> [UInt8] { Array(UnsafeRawBufferPointer(start: memory, count: 12)) }
    nonces.writeNext(to: memory)
    let first = prefix()
    for _ in 1..<NonceSequence.maximumPerPrefix { nonces.writeNext(to: memory) }
    #expect(prefix() == first)
    nonces.writeNext(to: memory)
    #expect(prefix() != first)
  }

  /// A connection during a checkpoint, on which the test makes SQLite's calls itself.
  private final class Checkpoint {
    let place: TemporaryDatabase
    let connection: SQLConnection
    let main: UnsafeMutablePointer<sqlite3_file>
    let log: UnsafeMutablePointer<sqlite3_file>
    private let registration: KeyRegistration

    init() throws {
      place = TemporaryDatabase()
      try place.makeDatabase(mode: "WAL")
      registration = try place.register()
      connection = try place.open()
      try connection.run("PRAGMA wal_autocheckpoint = 0; UPDATE t SET text = text || '!'")
      var files: (UnsafeMutablePointer<sqlite3_file>?, UnsafeMutablePointer<sqlite3_file>?)
      sqlite3_file_control(connection.pointer, "main", SQLITE_FCNTL_FILE_POINTER, &files.0)
      sqlite3_file_control(connection.pointer, "main", SQLITE_FCNTL_JOURNAL_POINTER, &files.1)
      main = try #require(files.0)
      log = try #require(files.1)
      _ = main.pointee.pMethods.pointee.xFileControl(main, SQLITE_FCNTL_CKPT_START, nil)
    }

    /// Reads a frame's page into a buffer, and returns its number and its sealed form.
    func read(frame: Int, into buffer: UnsafeMutableRawPointer) throws -> (UInt32, [UInt8]) {
      let start = 32 + frame * 4120
      let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: place.log.string))
      defer { try? handle.close() }
      try handle.seek(toOffset: UInt64(start))
      let bytes = [UInt8](try #require(try handle.read(upToCount: 4120)))
      let result = log.pointee.pMethods.pointee.xRead(log, buffer, 4096, Int64(start + 24))
      #expect(result == SQLITE_OK)
      return (bytes[0..<4].reduce(0) { $0 << 8 | UInt32($1) }, Array(bytes[24...]))
    }

    /// Reads a frame with its header, as SQLite does to compute checksums.
    func readWhole(frame: Int) {
      var bytes = [UInt8](repeating: 0, count: 4120)
      let start = Int64(32 + frame * 4120)
      #expect(log.pointee.pMethods.pointee.xRead(log, &bytes, 4120, start) == SQLITE_OK)
    }

    /// Writes a page to the database, and returns the page there, sealed and opened.
    func write(_ buffer: UnsafeMutableRawPointer, page: UInt32) throws -> ([UInt8], [UInt8]) {
      let offset = Int64(page - 1) * 4096
      let methods = main.pointee.pMethods.pointee
      #expect(methods.xWrite(main, buffer, 4096, offset) == SQLITE_OK)
      var opened = [UInt8](repeating: 0, count: 4096)
      #expect(methods.xRead(main, &opened, 4096, offset) == SQLITE_OK)
      let copy = try place.afterKill()
      let sealed = try copy.bytes(copy.database)[Int(offset)..<Int(offset) + 4096]
      return (Array(sealed), opened)
    }
  }

  enum Change: CaseIterable {
    case nothing, aByte, otherBuffer, otherPage, anotherReadBetween
  }

  @Test(arguments: Change.allCases)
  func `a checkpoint copies the page just read, and seals any other write again`(
    change: Change
  ) throws {
    let checkpoint = try Checkpoint()
    let buffers = (0..<2).map { _ in
      UnsafeMutableRawPointer.allocate(byteCount: 4096, alignment: 8)
    }
    defer { for buffer in buffers { buffer.deallocate() } }
    var source = buffers[0]
    var (page, sealed) = try checkpoint.read(frame: 3, into: source)
    switch change {
    case .nothing: break
    case .aByte: source.storeBytes(of: 0x5A, toByteOffset: 2000, as: UInt8.self)
    case .otherBuffer:
      buffers[1].copyMemory(from: source, byteCount: 4096)
      source = buffers[1]
    case .otherPage: page += 1
    case .anotherReadBetween: checkpoint.readWhole(frame: 4)
    }
    let expected = Array(UnsafeRawBufferPointer(start: source, count: 4096))
    let (found, opened) = try checkpoint.write(source, page: page)
    let isCopy = found == sealed
    #expect(isCopy == (change == .nothing))
    let isUnchanged = opened == expected
    #expect(isUnchanged)
    let hasNonceOfLog = Array(found[4056..<4080]) == Array(sealed[4056..<4080])
    #expect(hasNonceOfLog == (change == .nothing))
    sealed = []
  }

  @Test func `a checkpoint copies a page once, and seals a second write of it again`() throws {
    let checkpoint = try Checkpoint()
    let buffer = UnsafeMutableRawPointer.allocate(byteCount: 4096, alignment: 8)
    defer { buffer.deallocate() }
    let (page, sealed) = try checkpoint.read(frame: 3, into: buffer)
    #expect(try checkpoint.write(buffer, page: page).0 == sealed)
    #expect(try checkpoint.write(buffer, page: page).0 != sealed)
  }
}
