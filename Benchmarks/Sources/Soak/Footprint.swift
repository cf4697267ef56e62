import Foundation
import SystemPackage

/// The memory and file sizes at one moment, in MiB.
struct Footprint: CustomStringConvertible {
  let ownMemory: Double
  let followerMemory: Double
  let databaseSize: Double
  let logSize: Double

  init(home: FilePath, followerID: Int32) throws {
    ownMemory = try Self.memory(of: "self")
    followerMemory = try Self.memory(of: "\(followerID)")
    databaseSize = try Self.size(of: home.appending("messaging.db"))
    logSize = try Self.size(of: home.appending("messaging.db-wal"))
  }

  var fileSize: Double { databaseSize + logSize }
  var memory: String { "\(Self.text(ownMemory)) + \(Self.text(followerMemory))" }
  var file: String { "\(Self.text(databaseSize)) + \(Self.text(logSize))" }

  var description: String { "memory \(memory) MiB, file \(file) MiB" }

  private static func memory(of process: String) throws -> Double {
    let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
    let kilobytes = line?.split(separator: " ").dropFirst().first.flatMap { Double($0) }
    return (kilobytes ?? 0) / 1024
  }

  private static func size(of path: FilePath) throws -> Double {
    let attributes = try FileManager.default.attributesOfItem(atPath: path.string)
    return Double((attributes[.size] as? NSNumber)?.int64Value ?? 0) / 1_048_576
  }

  private static func text(_ number: Double) -> String { "\((number * 10).rounded() / 10)" }
}
