import Foundation
import ProcessMemory
import TestSupport
import Testing

/// The built `datavaultd`, running on a home with a password of its own and the open application `shop`.
final class ServerProgram {
  /// The keys of the application.
  struct Keys: Decodable { let publishKey, subscribeKey, secretKey: String }

  let home: String
  private(set) var url = ""
  let keys: Keys
  private let scratch: ScratchFolder
  private var arguments: [String]
  private var process = Process()

  /// - Parameter options: more options of `serve`.
  init(in scratch: ScratchFolder, _ options: [String] = []) throws {
    self.scratch = scratch
    home = scratch.path("home")
    let password = try Self.secure(scratch)
    let opening = ["--home", home, "--password-file", password]
    let added = try Program.run(
      Program.datavaultd, ["app", "add", "shop", "--open", "--json"] + opening)
    keys = try JSONDecoder().decode(Keys.self, from: Data(added.output))
    arguments = ["serve", "--listen", "127.0.0.1:0"] + opening + options
    try start()
  }

  private func start() throws {
    process = Process()
    process.executableURL = URL(fileURLWithPath: Program.datavaultd)
    process.arguments = arguments
    process.standardOutput = try scratch.writing("output")
    process.standardError = try scratch.writing("log")
    try process.run()
    let line = try eventually(scratch.contents(of: "log") ?? "") {
      scratch.contents(of: "output").flatMap { $0.hasSuffix("\n") ? $0 : nil }
    }
    url = try #require(line.split(whereSeparator: \.isWhitespace).last.map(String.init), "\(line)")
  }

  deinit { stop() }

  /// Ends the process as a crash does.
  func kill() {
    Glibc.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Starts the server on its home and port again, after a stop or a kill.
  func restart() throws {
    arguments[2] = String(url.drop { $0 != "/" }.dropFirst(2))
    try start()
  }

  func stop() {
    process.terminate()
    process.waitUntilExit()
  }

  /// Makes the home, and the file of its password.
  static func secure(_ scratch: ScratchFolder) throws -> String {
    let password = try scratch.file("password", "correct horse battery staple 42X!".utf8)
    let secured = try Program.run(
      Program.datavault,
      ["secure", "--home", scratch.path("home"), "--new-password-file", password])
    try #require(secured.status == 0, "\(secured.errors)")
    return password
  }

  /// Publishes a JSON text, and returns the answer.
  @discardableResult
  func publish(_ json: some Sequence<UInt8>, to channel: String) throws -> String {
    try Program.run(
      "/usr/bin/curl",
      [
        "-sS", "--data-binary", "@-",
        "\(url)/publish/\(keys.publishKey)/\(keys.subscribeKey)/0/\(channel)/0",
      ], input: Array(json)
    ).text
  }

  func get(_ target: String) throws -> String {
    try Program.run("/usr/bin/curl", ["-sS", url + target]).text
  }

  /// What is in the memory of the process.
  func image(_ name: String) throws -> MemoryImage {
    try MemoryImage.write(of: String(process.processIdentifier), to: scratch.path(name))
    return try MemoryImage(readingFrom: scratch.path(name))
  }
}
