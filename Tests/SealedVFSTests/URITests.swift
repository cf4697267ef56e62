import CSQLite
import FaultVFS
import SystemPackage
import Testing

/// URIs in a program that does not take keys from URIs; ExtensionTests covers the other programs.
@Suite struct URITests {
  @Test(arguments: ["", "&keyfile=key", "&keyfd=0"])
  func `vfs=sealed in a URI is refused if no key is registered`(parameters: String) throws {
    let place = TemporaryDatabase()
    try place.register()  // the VFS is installed
    let uri = "file:\(place.directory.appending("other.db"))?vfs=sealed\(parameters)"
    let failure = #expect(throws: SQLFailure.self) { try SQLConnection(uri) }
    #expect(failure?.primaryCode == SQLITE_AUTH)
  }

  @Test func `vfs=sealed in a URI opens a registered database`() throws {
    let place = TemporaryDatabase()
    try place.register()
    let connection = try SQLConnection("file:\(place.database)?vfs=sealed")
    #expect(try connection.run("CREATE TABLE t(x); SELECT count(*) FROM t") == ["0"])
  }
}
