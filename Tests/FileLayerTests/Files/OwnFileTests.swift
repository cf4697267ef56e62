import FileLayer
import Foundation
import Glibc
import SystemPackage
import Testing

/// What lies where this process is to go on with a file of its own.
private enum Plant: String, CaseIterable, CustomTestStringConvertible {
  case symbolicLink, hardLink, pipe, directory, otherMode, otherOwner

  var testDescription: String { rawValue }

  /// Puts it there, beside the file "victim".
  func put(_ name: String, in directory: TemporaryDirectory) throws {
    let path = directory(name).string
    let victim = directory("victim").string
    try directory.put("victim", at: "victim")
    chmod(victim, 0o600)
    switch self {
    case .symbolicLink: try #require(symlink(victim, path) == 0)
    case .hardLink: try #require(link(victim, path) == 0)
    case .pipe: try #require(mkfifo(path, 0o600) == 0)
    case .directory: try #require(mkdir(path, 0o700) == 0)
    case .otherMode, .otherOwner:
      try directory.put("", at: name)
      chmod(path, self == .otherMode ? 0o640 : 0o600)
      if self == .otherOwner { try #require(chown(path, 65534, 65534) == 0) }
    }
  }

  /// Those that this test process can plant.
  static var possible: [Plant] { allCases.filter { $0 != .otherOwner || geteuid() == 0 } }

  var refusal: String {
    switch self {
    case .symbolicLink: "it is a symbolic link"
    case .hardLink: "it has more than one name (hard links)"
    case .pipe: "it is not a regular file"
    case .directory: "it is a directory"
    case .otherMode: "other users may read or write it"
    case .otherOwner: "it belongs to user 65534"
    }
  }
}

@Suite struct OwnFileTests {
  let directory: TemporaryDirectory
  let files = LinuxFileSystem()

  init() throws {
    directory = try TemporaryDirectory()
  }

  @Test(arguments: Plant.possible)
  private func `a file that somebody else could have made is not gone on with`(
    _ plant: Plant
  ) throws {
    try plant.put("file", in: directory)
    let error = #expect(throws: FileError.self) {
      try OwnFile.open(directory("file"), .contents, for: .write).close()
    }
    #expect(error?.refusal == plant.refusal)
    #expect(error?.hint != nil)
    #expect(directory.contents(of: "victim") == "victim")
  }

  @Test func `a file of this user alone is gone on with`() throws {
    try OwnFile.create(directory("file"), permissions: .ownerReadWrite).close()
    let file = try OwnFile.open(directory("file"), .contents, for: .write)
    try file.writeAll(Array("more".utf8))
    try file.close()
    #expect(directory.contents(of: "file") == "more")
  }

  @Test(arguments: Plant.possible.filter { $0 != .otherMode })
  private func `a lock is not taken on a file that somebody else could have made`(
    _ plant: Plant
  ) throws {
    try plant.put("lock", in: directory)
    let error = #expect(throws: FileError.self) {
      try files.lock(directory("lock"), wait: false)?.release()
    }
    #expect(error?.refusal == plant.refusal)
    #expect(directory.contents(of: "victim") == "victim")
  }

  @Test func `a lock file of which a kill has left two names is taken`() throws {
    try directory.put("", at: "lock")
    #expect(link(directory("lock").string, directory(".lock.datavault.new").string) == 0)
    #expect(try files.lock(directory("lock"), wait: false) != nil)
  }

  @Test(.enabled(if: geteuid() == 0))
  func `root takes the lock of the directory's owner, and of whom it makes the file for`() throws {
    let owner = FileOwner(userID: 65534, groupID: 65534)
    try directory.put("", at: "lock")
    chown(directory("lock").string, owner.userID, owner.groupID)
    #expect(throws: FileError.self) { try files.lock(directory("lock"), wait: false) }
    #expect(try files.lock(directory("lock"), wait: false, owner: owner) != nil)
    chown(directory.path.string, owner.userID, owner.groupID)
    #expect(try files.lock(directory("lock"), wait: false) != nil)
    // What it holds would be the owner's to read: root does not go on with it.
    chmod(directory("lock").string, 0o600)
    let error = #expect(throws: FileError.self) {
      try OwnFile.open(directory("lock"), .contents, for: .write).close()
    }
    #expect(error?.refusal == "it belongs to user 65534")
  }

  @Test func `no other file of the sources makes files`() throws {
    let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources")
    let signs = [
      "O_CREAT", "O_TRUNC", "options: .create", "options: [.create", ".truncate]", "createFile(",
      "FileHandle(forWriting", "FileHandle(forUpdating", "fopen(", "creat(", "mkstemp", "mkfifo(",
      "O_RDWR", "O_WRONLY",
    ]
    var found: [String] = []
    let names = try #require(FileManager.default.enumerator(atPath: sources.path))
    for case let name as String in names where name.hasSuffix(".swift") {
      let text = try String(contentsOf: sources.appending(path: name), encoding: .utf8)
      if signs.contains(where: text.contains) { found.append(name) }
    }
    // The terminal and /dev/null are no files.
    #expect(
      found.sorted() == [
        "DataVaultCommand/Input/StandardDescriptors.swift", "DataVaultCommand/Input/Terminal.swift",
        "FileLayer/Files/OwnFile.swift",
      ])
  }
}
