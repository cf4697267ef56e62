import CSQLite
import Foundation
import TestSupport
import Testing

/// Loading the extension: the programs that can load it, and its effect on the process.
@Suite struct LoadingTests {
  private let bench = Workbench()

  @Test func `the extension can be loaded again, and stays when its connection closes`() throws {
    let outcome = try bench.python(
      """
      loader.close()
      again = sqlite3.connect(":memory:"); again.enable_load_extension(True)
      again.load_extension(\"\(Workbench.library)\")
      again.close()
      db = sqlite3.connect("file:a.db?vfs=sealed&keyfile=key", uri=True)
      db.execute("CREATE TABLE t(x)")
      print(db.execute("SELECT sealed_error()").fetchone()[0])
      """)
    outcome.expectOutput("None\n")
  }

  @Test func `a second copy of the sealed VFS in one process is refused`() throws {
    try #require(mkdir(bench.path("copy"), 0o700) == 0)
    try FileManager.default.copyItem(
      atPath: Workbench.library, toPath: bench.path("copy/libsealedsqlite.so"))
    let outcome = try bench.shell(".load ./copy/libsealedsqlite")
    #expect(outcome.errors.contains("another copy of the sealed VFS is in this process"))
    #expect(outcome.status != 0)
  }

  @Test func `the extension refuses an SQLite library that it is not linked to`() throws {
    typealias Entry =
      @convention(c) (
        OpaquePointer?, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
        UnsafePointer<sqlite3_api_routines>?
      ) -> Int32
    let library = try #require(dlopen(Workbench.library, RTLD_NOW | RTLD_LOCAL))
    let symbol = try #require(dlsym(library, "sqlite3_sealedsqlite_init"))
    let entry = unsafeBitCast(symbol, to: Entry.self)
    var routines = sqlite3_api_routines()
    // The same version at another address, as in a process with a second SQLite.
    routines.sourceid = { LoadingTests.copiedSourceID }
    var message: UnsafeMutablePointer<CChar>?
    #expect(entry(nil, &message, &routines) == SQLITE_ERROR)
    let words = try #require(message.map { String(cString: $0) })
    sqlite3_free(message)
    #expect(words.contains("this program has an SQLite of its own (2"))
  }

  // Sendable: written once, never freed.
  nonisolated(unsafe) private static let copiedSourceID = UnsafePointer(strdup(sqlite3_sourceid()))

  @Test func `the extension's functions cannot be called from a schema`() throws {
    let outcome = try bench.shell("CREATE VIEW v AS SELECT sealed_reserve()", "SELECT * FROM v")
    #expect(outcome.errors.contains("unsafe use of sealed_reserve()"))
  }

  @Test func `loading the extension keeps existing temporary tables`() throws {
    let outcome = try bench.stockShell(
      "-bail", ":memory:", "CREATE TEMP TABLE t AS SELECT 1 AS x", ".load \(Workbench.library)",
      "SELECT x FROM t")
    outcome.expectOutput("1\n")
  }
}
