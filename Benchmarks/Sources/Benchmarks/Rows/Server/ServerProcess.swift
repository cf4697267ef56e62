import Foundation
import Glibc

/// A server that this process starts and ends, with its worker processes.
final class ServerProcess {
  private let process = Process()
  let port: UInt16

  /// Starts a program, and waits until it accepts connections.
  init(_ arguments: [String], port: UInt16, environment: [String: String] = [:]) throws {
    self.port = port
    process.executableURL = URL(fileURLWithPath: arguments[0])
    process.arguments = Array(arguments.dropFirst())
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.runWithUnblockedSignals()
    while !LoopbackPort.accepts(port) {
      guard process.isRunning else { throw BenchmarkError("\(arguments[0]) has ended") }
      usleep(1000)
    }
  }

  deinit {
    guard process.isRunning else { return }
    process.terminate()
    process.waitUntilExit()
  }

  /// Ends the server with SIGKILL.
  func kill() {
    Glibc.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// The processor time until now.
  func processorSeconds() throws -> Double {
    try ids().reduce(0) { sum, id in
      let stat = try String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8)
      // The name of the program, the second field, can have spaces: proc(5).
      let fields = stat[(stat.lastIndex(of: ")") ?? stat.startIndex)...].split(separator: " ")
      return sum + ((Double(fields[12]) ?? 0) + (Double(fields[13]) ?? 0)) / Self.ticksPerSecond
    }
  }

  func residentByteCount() throws -> Int {
    try ids().reduce(0) { try $0 + ResidentMemory.byteCount(of: $1) }
  }

  private static let ticksPerSecond = Double(sysconf(Int32(_SC_CLK_TCK)))

  /// The server and its children.
  private func ids() throws -> [pid_t] {
    let id = process.processIdentifier
    let children = try String(contentsOfFile: "/proc/\(id)/task/\(id)/children", encoding: .utf8)
    return [id] + children.split(separator: " ").compactMap { pid_t($0) }
  }
}

/// TCP ports of 127.0.0.1.
enum LoopbackPort {
  /// A port that nothing listens on now.
  static func free() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = address(0)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(descriptor, address, size) == 0 ? getsockname(descriptor, address, &size) : -1
      }
    }
    guard result == 0 else { throw BenchmarkError("no free port") }
    return UInt16(bigEndian: address.sin_port)
  }

  static func accepts(_ port: UInt16) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = address(port)
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  private static func address(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    return address
  }
}
