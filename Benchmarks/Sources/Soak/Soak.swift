import Foundation
import MessagingQueue
import SystemPackage
import VaultedDatabase

/// Runs the engine at full load for `SOAK_MINUTES`.
///
/// It prints a line per minute and the totals last, and fails if a promise is broken.
@main enum Soak {
  /// The first argument of the process that only reads.
  ///
  /// The home follows.
  static let followerArgument = "--follow"
  /// The maximum growth of memory from the first minute to the last, in MiB, in each process.
  private static let memoryGain = 24.0

  static func main() async throws {
    let arguments = CommandLine.arguments
    if arguments.count == 3, arguments[1] == followerArgument {
      return try await LogFollower.run(home: FilePath(arguments[2]))
    }
    let minutes = ProcessInfo.processInfo.environment["SOAK_MINUTES"].flatMap(Int.init) ?? 60
    let home = FilePath(
      FileManager.default.temporaryDirectory.appendingPathComponent(
        "datavault-soak-\(UUID().uuidString)"
      ).path)
    defer { try? FileManager.default.removeItem(atPath: home.string) }
    let isKept = try await run(home, minutes: max(minutes, 1))
    if !isKept {
      try? FileManager.default.removeItem(atPath: home.string)
      exit(1)
    }
  }

  private static func run(_ home: FilePath, minutes: Int) async throws -> Bool {
    let load = try await SoakLoad(home: DataVaultHome(home))
    let follower = try FollowerProcess(home: home)
    load.begin()
    var footprints: [Footprint] = []
    var isFileBounded = true
    for minute in 1...minutes {
      try await Task.sleep(for: .seconds(60))
      let footprint = try Footprint(home: home, followerID: follower.id)
      footprints.append(footprint)
      let figures = load.account.takeMinute()
      let rate = Double(figures.acknowledged) / 60
      if footprint.fileSize > load.mostFileSize(messagesPerSecond: rate) { isFileBounded = false }
      print(
        """
        minute \(minute): \(figures.acknowledged) messages, \(figures.acknowledged / 60)/s, \
        publish \(figures.publish), delivery \(figures.delivery), \(footprint)
        """)
      // The program runs for an hour, so each line must appear immediately.
      fflush(nil)
    }
    let lost = try await load.end()
    let followed = try follower.end()
    let (first, last) = (footprints[0], footprints[minutes - 1])
    let account = load.account.summary
    print(
      """
      soak: \(account.acknowledged) messages in \(minutes) minutes, \(account.failed) failed attempts, \
      lost: \(lost), repeated: \(account.repeated), followed: \(followed.count), gaps: \(followed.gaps), \
      memory first and last: \(first.memory), \(last.memory) MiB, \
      file first and last: \(first.file), \(last.file) MiB
      """)
    let isFlat =
      last.ownMemory - first.ownMemory <= memoryGain
      && last.followerMemory - first.followerMemory <= memoryGain
    if !isFlat { print("soak: memory has grown by more than \(memoryGain) MiB") }
    if !isFileBounded { print("soak: the file has grown beyond the kept messages") }
    return lost == 0 && account.repeated == 0 && followed.gaps == 0 && followed.count > 0
      && account.acknowledged > 0 && isFlat && isFileBounded
  }
}
