import FileLayer
import Glibc
import SystemPackage
import TestSupport
import Testing

@Suite struct LinuxFileSystemTests {
  let directory = ScratchFolder()
  let files = LinuxFileSystem()

  // MARK: Absence and obstacles

  @Test func `a missing file is a result, not an error`() throws {
    #expect(try files.status(of: directory("none")) == nil)
    #expect(try files.read(directory("none"), maximumByteCount: 10) == nil)
    #expect(try files.entries(of: directory("none")) == nil)
    #expect(try files.read(directory("none/below"), maximumByteCount: 10) == nil)
    try files.remove(directory("none"))
  }

  @Test func `a file in place of a directory is an error`() throws {
    try directory.put("x", at: "file")
    let path = directory("file/below")
    #expect(throws: FileError(.status, path, .notDirectory)) { try files.status(of: path) }
    #expect(throws: FileError(.read, path, .notDirectory)) {
      try files.read(path, maximumByteCount: 10)
    }
    #expect(throws: FileError(.list, directory("file"), .notDirectory)) {
      try files.entries(of: directory("file"))
    }
  }

  /// In a separate process that drops root's rights, because root can read everything.
  @Test func `an unreadable file is an error`() async throws {
    try directory.put("x", at: "file")
    try #require(chmod(directory("file").string, 0) == 0)
    try #require(chmod(directory.path.string, 0o755) == 0)
    let path = directory("file").string
    await #expect(processExitsWith: .success) { [path = path as String] in
      if geteuid() == 0 { guard setuid(65534) == 0 else { exit(2) } }
      do {
        _ = try LinuxFileSystem().read(FilePath(path), maximumByteCount: 10)
        exit(3)
      } catch let error as FileError {
        exit(error.errno == .permissionDenied ? 0 : 4)
      }
    }
  }

  // MARK: Reading

  @Test func `read() returns all bytes up to the maximum`() throws {
    try directory.put("12345", at: "file")
    #expect(try files.read(directory("file"), maximumByteCount: 5) == Array("12345".utf8))
    #expect(throws: FileError(.read, directory("file"), .fileTooLarge)) {
      try files.read(directory("file"), maximumByteCount: 4)
    }
    try directory.put("", at: "empty")
    #expect(try files.read(directory("empty"), maximumByteCount: 0) == [])
  }

  @Test func `read() refuses a symbolic link`() throws {
    try directory.put("x", at: "file")
    try #require(symlink(directory("file").string, directory("link").string) == 0)
    #expect(throws: FileError(.read, directory("link"), .tooManySymbolicLinkLevels)) {
      try files.read(directory("link"), maximumByteCount: 10)
    }
    #expect(try files.status(of: directory("link"))?.kind == .symbolicLink)
  }

  @Test func `read() refuses everything but regular files`() throws {
    try #require(mkfifo(directory("pipe").string, 0o600) == 0)
    try files.createDirectory(directory("folder"), permissions: .ownerReadWriteExecute)
    for name in ["pipe", "folder"] {
      #expect(throws: FileError(.read, directory(name), .invalidArgument)) {
        try files.read(directory(name), maximumByteCount: 10)
      }
    }
    #expect(try files.status(of: directory("pipe"))?.kind == .other)
  }

  @Test func `entries() returns sorted names`() throws {
    for name in ["b", "c", "a", ".hidden"] { try directory.put("", at: name) }
    #expect(try files.entries(of: directory.path) == [".hidden", "a", "b", "c"])
  }

  @Test func `status() returns kind, size, owner and permissions`() throws {
    try directory.put("12345", at: "file")
    try #require(chmod(directory("file").string, 0o640) == 0)
    let status = try #require(try files.status(of: directory("file")))
    #expect(status.kind == .regular)
    #expect(status.byteCount == 5)
    #expect(status.owner == FileOwner(userID: geteuid(), groupID: getegid()))
    #expect(status.permissions == [.ownerReadWrite, .groupRead])
    #expect(status.isOpenToOthers)
    try #require(chmod(directory("file").string, 0o600) == 0)
    #expect(try files.status(of: directory("file"))?.isOpenToOthers == false)
  }

  // MARK: Writing

  @Test func `create() refuses an existing file or link`() throws {
    try directory.put("old", at: "file")
    #expect(throws: FileError(.create, directory("file"), .fileExists)) {
      try files.create(directory("file"), permissions: .ownerReadWrite)
    }
    try #require(symlink(directory("elsewhere").string, directory("link").string) == 0)
    #expect(throws: FileError(.create, directory("link"), .fileExists)) {
      try files.create(directory("link"), permissions: .ownerReadWrite)
    }
    #expect(directory.contents(of: "file") == "old")
    #expect(try directory.names() == ["file", "link"])
  }

  @Test func `consecutive writes append`() throws {
    let file = try files.create(directory("file"), permissions: .ownerReadWrite)
    try file.write(Array("one ".utf8))
    try file.write([])
    try file.write(Array("two".utf8))
    try file.synchronize()
    file.close()
    #expect(directory.contents(of: "file") == "one two")
  }

  /// In a separate process, because the umask belongs to the process.
  @Test(arguments: [0 as UInt32, 0o022, 0o077, 0o277, 0o777])
  func `permissions are exact under any umask`(_ mask: UInt32) async throws {
    let path = directory.path.string
    await #expect(processExitsWith: .success) { [path = path as String, mask = mask as UInt32] in
      umask(mask)
      let directory = FilePath(path)
      let files = LinuxFileSystem()
      let file = try files.create(directory.appending("file"), permissions: .ownerReadWrite)
      file.close()
      try files.createDirectory(directory.appending("folder"), permissions: .ownerReadWriteExecute)
      guard
        try files.status(of: directory.appending("file"))?.permissions == .ownerReadWrite,
        try files.status(of: directory.appending("folder"))?.permissions
          == .ownerReadWriteExecute
      else { exit(2) }
      exit(0)
    }
  }

  @Test func `createDirectory() leaves an existing directory unchanged`() throws {
    try files.createDirectory(directory("folder"), permissions: [.ownerReadWriteExecute])
    try #require(chmod(directory("folder").string, 0o755) == 0)
    try files.createDirectory(directory("folder"), permissions: [.ownerReadWriteExecute])
    #expect(
      try files.status(of: directory("folder"))?.permissions
        == FilePermissions(rawValue: 0o755))
    try directory.put("x", at: "file")
    #expect(throws: FileError(.createDirectory, directory("file"), .fileExists)) {
      try files.createDirectory(directory("file"), permissions: .ownerReadWriteExecute)
    }
  }

  @Test func `rename(to:) replaces an existing file`() throws {
    try directory.put("new", at: "a")
    try directory.put("old", at: "b")
    try files.rename(directory("a"), to: directory("b"))
    #expect(try directory.names() == ["b"])
    #expect(directory.contents(of: "b") == "new")
    #expect(throws: FileError(.rename, directory("a"), .noSuchFileOrDirectory)) {
      try files.rename(directory("a"), to: directory("b"))
    }
  }

  @Test func `rename(toFree:) refuses an existing file`() throws {
    try directory.put("new", at: "a")
    try directory.put("old", at: "b")
    #expect(throws: FileError(.rename, directory("a"), .fileExists)) {
      try files.rename(directory("a"), toFree: directory("b"))
    }
    #expect(directory.contents(of: "b") == "old")
    try files.rename(directory("a"), toFree: directory("c"))
    #expect(try directory.names() == ["b", "c"])
    #expect(directory.contents(of: "c") == "new")
  }

  @Test func `a file gets its name only if no other has its temporary name`() throws {
    try directory.put("old", at: "b")
    let file = try files.create(directory("a"), permissions: .ownerReadWrite)
    defer { file.close() }
    #expect(throws: FileError(.rename, directory("a"), .fileExists)) {
      try file.rename(toFree: directory("b"))
    }
    try files.remove(directory("a"))
    try directory.put("another process's", at: "a")
    #expect(throws: FileError(.rename, directory("a"), .resourceBusy)) {
      try file.rename(toFree: directory("c"))
    }
    #expect(try directory.names() == ["a", "b"])
  }

  @Test func `changeOwner() works for root and reports a refusal to others`() throws {
    let own = FileOwner(userID: geteuid(), groupID: getegid())
    let file = try files.create(directory("file"), permissions: .ownerReadWrite)
    defer { file.close() }
    try file.changeOwner(to: own)
    let other = FileOwner(userID: 65534, groupID: 65534)
    if geteuid() == 0 {
      try file.changeOwner(to: other)
      #expect(try files.status(of: directory("file"))?.owner == other)
    } else {
      #expect(throws: FileError(.changeOwner, directory("file"), .notPermitted)) {
        try file.changeOwner(to: other)
      }
    }
  }

  @Test func `synchronizeDirectory() reports a missing directory`() throws {
    try files.synchronizeDirectory(directory.path)
    #expect(throws: FileError(.synchronize, directory("none"), .noSuchFileOrDirectory)) {
      try files.synchronizeDirectory(directory("none"))
    }
  }

  @Test func `an error names the operation, the path and the reason`() {
    let error = FileError(.rename, "/somewhere/file", .noSpace)
    #expect(error.description == "cannot rename /somewhere/file: No space left on device")
  }
}
