import SystemPackage
import VaultedDatabase

/// A measurement that does not run passes of statements.
struct Measurement {
  let name: String
  let folder: String
  let rows: (_ folder: FilePath) async throws -> [ResultRow]

  private static let rounds = 7

  /// - Parameters:
  ///   - options: the available programs.
  ///   - contestants: plain SQLite and the peers, for comparisons with them.
  static func all(_ options: Options, _ contestants: Contestants) -> [Measurement] {
    let command = options.command
    let commandCost = command.map { command in
      Measurement(name: CommandCost.name, folder: "command") { folder in
        try await CommandCost.measure(
          program: command, home: DataVaultHome(folder), rounds: 2 * rounds)
      }
    }
    let installedSize = command.map { command in
      Measurement(name: InstalledSize.name, folder: "size") { _ in
        [try InstalledSize.measure(program: command)]
      }
    }
    let liteQueueCost = options.liteQueuePython.map { python in
      Measurement(name: LiteQueueCost.name, folder: "litequeue") { folder in
        try await LiteQueueCost.measure(
          folder: folder, python: python, script: options.liteQueueScript, rounds: rounds)
      }
    }
    return [
      Measurement(name: "lease + acknowledge, FULL, through the engine", folder: "lease") {
        folder in
        [try await LeaseCost.measure(folder: folder, rounds: 11).row]
      },
      Measurement(name: "publish", folder: "publish") { folder in
        try await PublishCost.measure(folder: folder, rounds: rounds)
      },
      Measurement(name: PublisherCost.name, folder: "publishers") { folder in
        try await PublisherCost.measure(
          folder: folder, contestants: contestants, rounds: rounds)
      },
      Measurement(name: PublishWrites.name, folder: "publish-writes") { folder in
        try await PublishWrites.measure(folder: folder)
      },
      Measurement(name: ReceiveCost.name, folder: "receive") { folder in
        [try await ReceiveCost.measure(folder: folder, rounds: rounds)]
      },
      Measurement(name: DepthCost.name, folder: "depth") { folder in
        try await DepthCost.measure(folder: folder, rounds: rounds)
      },
      Measurement(name: LiveCost.name, folder: "live") { folder in
        try await LiveCost.measure(program: command, home: folder)
      },
      Measurement(name: "change of key", folder: "rekey") { folder in
        [try KeyChangeCost.measure(folder: folder, rounds: rounds).row]
      },
      Measurement(name: "memory", folder: "memory") { folder in
        try MemoryCost.measure(folder: folder)
      },
      Measurement(name: "page", folder: "page") { _ in
        [
          try await PageCost.measure(decrypting: false, rounds: rounds).row,
          try await PageCost.measure(decrypting: true, rounds: rounds).row,
          try await PageCost.measureOpeningUnderChangingKeys(rounds: rounds).row,
        ]
      },
      Measurement(name: "unlock", folder: "unlock") { folder in
        [try await UnlockCost.measure(home: DataVaultHome(folder), rounds: rounds).row]
      },
      Measurement(name: LargeVaultCost.name, folder: "large-vault") { folder in
        [try await LargeVaultCost.measure(home: DataVaultHome(folder), rounds: rounds)]
      },
      Measurement(name: AccessCost.name, folder: "access") { _ in
        try AccessCost.measure(rounds: rounds)
      },
    ] + [liteQueueCost, commandCost, installedSize].compactMap { $0 }
      + (options.servers.map(network) ?? [])
  }

  /// The rows of the message server.
  private static func network(_ servers: Servers) -> [Measurement] {
    [
      Measurement(name: PublishingCost.name, folder: "publishing") { folder in
        try PublishingCost.measure(servers, folder: folder, rounds: rounds)
      },
      Measurement(name: STOMPPublishingCost.name, folder: "stomp-publishing") { folder in
        try STOMPPublishingCost.measure(servers, folder: folder, rounds: rounds)
      },
      Measurement(name: STOMPLeaseCost.name, folder: "stomp-leases") { folder in
        try STOMPLeaseCost.measure(servers, folder: folder, rounds: rounds)
      },
      Measurement(name: FanOutCost.name, folder: "fan-out") { folder in
        try FanOutCost.measure(servers, folder: folder, rounds: rounds)
      },
      Measurement(name: SubscriberMemory.name, folder: "subscribers") { folder in
        try SubscriberMemory.measure(servers, folder: folder)
      },
      Measurement(name: WakingCost.name, folder: "waking") { folder in
        try WakingCost.measure(servers, folder: folder, rounds: rounds)
      },
    ]
  }
}
