import DataVault
import FileLayer
import Glibc
import SystemPackage
import VaultCrypto

/// Files by their names relative to a home, which can be written to another home.
///
/// Names are strings: an enumeration handles so many that parsing paths would take most of its
/// time.
struct FileTree: Sendable {
  var files: [String: [UInt8]] = [:]

  var names: Set<String> { Set(files.keys) }

  /// A digest that is equal for equal files.
  var fingerprint: [UInt8] {
    var bytes: [UInt8] = []
    for name in files.keys.sorted() {
      bytes += Array("\(name)\n\(files[name]?.count ?? 0)\n".utf8)
      bytes += files[name] ?? []
    }
    return (try? SHA256.digest(bytes.span.bytes)) ?? bytes
  }
}

extension TemporaryHome {
  /// A directory in memory if available, because an enumeration writes thousands of homes.
  static let quickBase = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"

  /// A home with these files, with the permissions that a vault requires.
  ///
  /// - Parameter owner: the owner of all files and directories.
  convenience init(holding tree: FileTree, owner: FileOwner? = nil) throws {
    self.init(in: Self.quickBase)
    let home = path.string
    var directories: Set<String> = []
    func give(_ path: String) { if let owner { chown(path, owner.userID, owner.groupID) } }
    for (name, bytes) in tree.files {
      var directory = home
      for part in name.split(separator: "/").dropLast() {
        directory += "/\(part)"
        if directories.insert(directory).inserted {
          mkdir(directory, 0o700)
          give(directory)
        }
      }
      let descriptor = Glibc.open("\(home)/\(name)", O_WRONLY | O_CREAT | O_EXCL, 0o600)
      guard descriptor >= 0, Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
        throw FileError(.create, path, Errno(rawValue: Glibc.errno))
      }
      Glibc.close(descriptor)
      give("\(home)/\(name)")
    }
    give(home)
  }

  /// All files in the home.
  func files() throws -> FileTree { relative(try tree()) }

  /// The files among these that are in the home, with relative names.
  func relative(_ files: [FilePath: [UInt8]]) -> FileTree {
    let prefix = path.string + "/"
    var tree = FileTree()
    for (file, bytes) in files where file.string.hasPrefix(prefix) {
      tree.files[String(file.string.dropFirst(prefix.count))] = bytes
    }
    return tree
  }

  /// The same files with absolute names.
  func absolute(_ tree: FileTree) -> [FilePath: [UInt8]] {
    let files = tree.files.map { (FilePath("\(path.string)/\($0.key)"), $0.value) }
    return Dictionary(uniqueKeysWithValues: files)
  }
}
