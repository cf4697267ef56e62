import Foundation

/// A folder with a database and its companion files, in memory if possible.
struct FuzzFolder {
  let path: String
  var database: String { path + "/f.db" }

  init() throws {
    let base = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : "/tmp"
    path = "\(base)/datavault-fuzz-\(ProcessInfo.processInfo.processIdentifier)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  func contents(_ name: String) -> [UInt8]? {
    FileManager.default.contents(atPath: "\(path)/\(name)").map { [UInt8]($0) }
  }

  func put(_ name: String, _ bytes: [UInt8]) {
    precondition(
      FileManager.default.createFile(atPath: "\(path)/\(name)", contents: Data(bytes)),
      "\(name) cannot be written")
  }

  func remove(_ name: String) { unlink("\(path)/\(name)") }

  func removeAll() { try? FileManager.default.removeItem(atPath: path) }
}
