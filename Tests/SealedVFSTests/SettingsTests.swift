import CSQLite
import FaultVFS
import SealedVFS
import Testing

/// The answers of a sealed file to SQLite's queries about it.
@Suite struct SettingsTests {
  private func control(_ connection: SQLConnection, _ operation: Int32, _ value: Int64) -> Int64 {
    var value = value
    sqlite3_file_control(connection.pointer, "main", operation, &value)
    return value
  }

  @Test func `memory mapping stays off even on request`() throws {
    let place = try TemporaryDatabase.made()
    let connection = try place.connect()
    try connection.run("PRAGMA mmap_size = 268435456")
    #expect(try connection.first("PRAGMA mmap_size") ?? "0" == "0")
    #expect(control(connection, SQLITE_FCNTL_MMAP_SIZE, 1 << 28) == 0)
    #expect(try connection.rowCount == "300")
  }

  @Test func `a size hint does not reach the underlying VFS, and mapping is switched off there`()
    throws
  {
    let layer = LayerVFS()
    let place = TemporaryDatabase()
    let connection = try place.connect(over: layer.name)
    try connection.fill(20)
    #expect(control(connection, SQLITE_FCNTL_SIZE_HINT, 1 << 20) == 1 << 20)
    #expect(layer.fileControls.contains(SQLITE_FCNTL_MMAP_SIZE))
    #expect(!layer.fileControls.contains(SQLITE_FCNTL_SIZE_HINT))
  }

  @Test func `WAL mode over a VFS without shared memory requires exclusive locking`()
    throws
  {
    let layer = LayerVFS(hasSharedMemory: false)
    let place = TemporaryDatabase()
    let connection = try place.connect(over: layer.name)
    try connection.fill(20)
    #expect(try connection.first("PRAGMA journal_mode = WAL") == "delete")
    try connection.run("UPDATE t SET text = text || '!'")
    #expect(try connection.integrity == "ok")
    let mode = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL"
    #expect(try connection.run(mode).last == "wal")
    try connection.run("UPDATE t SET text = text || '!'")
    connection.close()
    #expect(throws: SQLFailure.self) { try place.open().run("SELECT count(*) FROM t") }
    #expect(try place.query("SELECT count(*) FROM t WHERE text LIKE '%!!'") == "20")
  }

  @Test func `device characteristics come from an allow-list that includes safe overwrite`() throws
  {
    let place = TemporaryDatabase()
    let connection = try place.connect()
    try connection.fill(1)
    var memory: UnsafeMutablePointer<sqlite3_file>?
    sqlite3_file_control(connection.pointer, "main", SQLITE_FCNTL_FILE_POINTER, &memory)
    let methods = try #require(memory?.pointee.pMethods?.pointee)
    #expect(methods.iVersion == 2)
    let answer = methods.xDeviceCharacteristics(memory)
    #expect(answer & SQLITE_IOCAP_POWERSAFE_OVERWRITE != 0)
    #expect(answer & ~(SQLITE_IOCAP_POWERSAFE_OVERWRITE | SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN) == 0)
  }

  @Test func `a file grows by pages even if a chunk size is set`() throws {
    let (place, connection) = try TemporaryDatabase.connected()
    var chunk: Int32 = 1 << 20
    sqlite3_file_control(connection.pointer, "main", SQLITE_FCNTL_CHUNK_SIZE, &chunk)
    try connection.fill(20)
    connection.close()
    #expect(try place.bytes(place.database).count < 1 << 17)
  }

  @Test func `a connection opened after the registration's release is not sealed`() throws {
    let (place, connection) = try TemporaryDatabase.reopened()
    #expect(try connection.rowCount == "300")
    place.release()
    // The open connection holds the key itself; a new connection finds no key.
    #expect(try connection.rowCount == "300")
    #expect(throws: SQLFailure.self) { try place.open().rowCount }
  }

  @Test func `register() refuses an invalid key, file id or VFS`() throws {
    let place = TemporaryDatabase()
    let failures = [
      #expect(throws: SealedDatabaseError.self) { try place.register([1, 2, 3]) },
      #expect(throws: SealedDatabaseError.self) { try place.register(over: "no such VFS") },
      #expect(throws: SealedDatabaseError.self) { try place.register(newFileID: [1]) },
    ]
    #expect(failures.allSatisfy { $0?.code == .invalidArgument })
  }
}
