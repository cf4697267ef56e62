import CSQLite
import FaultVFS
import SealedVFS
import SystemPackage
import Testing

/// The files to which `VACUUM INTO` can write a sealed database.
@Suite struct VacuumTargetTests {
  @Test(arguments: ["DELETE", "WAL"], [true, false])
  func `VACUUM INTO a path without a key writes nothing, and the error has a hint`(
    mode: String, isFirstStatement: Bool
  ) throws {
    let (source, target) = (TemporaryDatabase(), TemporaryDatabase())
    try source.makeDatabase(mode: mode)
    let connection = try source.connect()
    if !isFirstStatement { #expect(try connection.rowCount == "300") }
    let failure = #expect(throws: SQLFailure.self) {
      try connection.run("VACUUM INTO '\(target.database)'")
    }
    #expect(failure?.code == SQLITE_AUTH)
    let fault = SealedConnection.fault(of: connection.pointer, reportedAs: SQLITE_AUTH)
    #expect(fault?.code == .vacuumTargetRefused && fault?.message == source.fault?.message)
    #expect(fault?.message.hasPrefix("\(target.database.string): ") == true)
    #expect(fault?.hint?.contains("SealedDatabase.vacuum") == true)
    #expect(try target.bytes(target.database).isEmpty)
    try connection.run("INSERT INTO t VALUES (301, 'more')")
    #expect(try connection.rowCount == "301")
  }

  @Test func `VACUUM INTO a path that is not UTF-8 is refused`() throws {
    let (source, target) = (try TemporaryDatabase.made(), TemporaryDatabase())
    let path = "'\(target.directory.string)/' || x'ff'"
    source.expectFault(.vacuumTargetRefused) {
      try source.connect().run("VACUUM INTO cast(\(path) AS TEXT)")
    }
  }

  @Test(arguments: [true, false])
  func `VACUUM INTO a target with a key but no mark is refused with a hint`(isSourceSealed: Bool)
    throws
  {
    let (source, target) = (TemporaryDatabase(), TemporaryDatabase())
    let registration = isSourceSealed ? try source.register() : nil
    let targetRegistration = try target.register()
    let connection = try source.open()
    try connection.fill(30)
    let failure = #expect(throws: SQLFailure.self) {
      try connection.run("VACUUM INTO '\(target.database)'")
    }
    #expect(failure?.code == SQLITE_AUTH)
    let fault = (registration ?? targetRegistration).fault
    #expect(fault?.code == .vacuumTargetRefused)
    #expect(fault?.hint?.contains("sealed_vacuum_into=1") == true)
    #expect(try target.bytes(target.database).isEmpty)
  }

  @Test(arguments: [true, false])
  func `VACUUM INTO writes a sealed file if the target is marked or registered with setsReserve`(
    isMarked: Bool
  ) throws {
    let (source, target) = (TemporaryDatabase(), TemporaryDatabase())
    try target.register(setsReserve: !isMarked)
    let connection = try source.connect()
    try connection.fill(300)
    let path = target.database.string
    try connection.run("VACUUM INTO '\(isMarked ? "file:\(path)?sealed_vacuum_into=1" : path)'")
    #expect(try target.open().rowCount == "300")
    #expect(try !target.bytes(target.database).contains(text: "canary"))
  }

  @Test func `VACUUM INTO copies a plain database to a plain file beside a sealed one`() throws {
    let (plain, sealed, target) = (TemporaryDatabase(), TemporaryDatabase(), TemporaryDatabase())
    try sealed.makeDatabase()
    let registration = try sealed.register()
    let connection = try plain.open()
    try connection.fill(300)
    try connection.run("ATTACH '\(sealed.database)' AS s")
    try connection.run("VACUUM INTO '\(target.database)'")
    #expect(try target.open().rowCount == "300")
    #expect(throws: SQLFailure.self) {
      try connection.run("VACUUM s INTO '\(target.directory)/attached.db'")
    }
    #expect(registration.fault?.code == .vacuumTargetRefused)
  }
}
