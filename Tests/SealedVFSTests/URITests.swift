import CSQLite
import SystemPackage
import Testing

/// What a URI may ask for in a program that takes no keys from URIs; the extension's tests have the
/// rest.
@Suite struct URITests {
  @Test(arguments: ["", "&keyfile=key", "&keyfd=0"])
  func `the sealed VFS is refused by name where no key is registered`(parameters: String) throws {
    let place = try TemporaryDatabase()
    let elsewhere = try place.register()  // the VFS is installed
    let uri = "file:\(place.directory.appending("other.db"))?vfs=sealed\(parameters)"
    let failure = #expect(throws: SQLiteFailure.self) { try Connection(uri) }
    #expect(failure?.primaryCode == SQLITE_AUTH)
    withExtendedLifetime(elsewhere) {}
  }

  @Test func `the sealed VFS by name opens a registered database`() throws {
    let place = try TemporaryDatabase()
    let registration = try place.register()
    let connection = try Connection("file:\(place.database)?vfs=sealed")
    #expect(try connection.run("CREATE TABLE t(x); SELECT count(*) FROM t") == ["0"])
    withExtendedLifetime(registration) {}
  }
}
