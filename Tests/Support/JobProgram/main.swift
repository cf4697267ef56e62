import DataVault
import Foundation
import GRDB
import Logging
import MessagingQueue
import MessagingQueueLifecycle
import ServiceLifecycle
import VaultCrypto
import VaultedDatabase

// JobProgram HOME CHANNELS MODE: works on the jobs of the channels 0, 1, 2 and so on, until it is
// killed. It prints a line when a handler begins, has worked, has completed its job or throws. A line
// on standard input locks the vault. With the mode `drain` no handler throws, and the program ends
// when no job is left. With `early` it acknowledges before the work, which the test must find.

/// Prints a line of one write, so that a kill leaves none that is torn and unseen.
func note(_ line: String) {
  FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

let arguments = CommandLine.arguments
let home = DataVaultHome(.init(arguments[1]))
let channels = try (0..<(Int(arguments[2]) ?? 0)).map { try Channel("jobs-\($0)") }
let mode = arguments[3]
let vault = try await Vault.get(.messaging, in: home.store)
try await vault.unlock(
  with: Credentials(password: SecretBytes(copying: Array("correct horse battery".utf8))))

let messages = MessagingService(home, vault: vault)
let workers = channels.enumerated().map { index, channel in
  Worker(channel) { job in
    let number = Int(job.delivery.string ?? "") ?? -1
    let label = "\(index) \(number)"
    note("begin \(label)")
    if mode == "early" { try await job.complete() }
    // Some are slow, so that their leases are renewed; some fail the first time.
    if number % 40 == 7 { try await Task.sleep(for: .milliseconds(700)) }
    if number % 10 == 3, mode != "drain", job.delivery.attempt == 1 {
      note("throws \(label)")
      throw JobFailure.retry(after: .zero)
    }
    if mode == "early" {
      // A kill can come between the acknowledgement and the end of the work.
      try await Task.sleep(for: .milliseconds(50))
    } else if number.isMultiple(of: 2) {
      // The work is the row, which the test counts.
      note("worked \(label)")
      try await job.complete { db in
        try db.execute(sql: "INSERT INTO done VALUES (?, ?)", arguments: [index, number])
      }
      note("completed \(label)")
      return
    }
    note("worked \(label)")
  }
}
var configuration = WorkerConfiguration()
configuration.concurrency = 16
configuration.lease = .milliseconds(600)
configuration.maximumAttempts = nil
configuration.logger = Logger(label: "jobs") { _ in SwiftLogNoOpLogHandler() }
let service = WorkerService(messages, workers, configuration: configuration)
let group = ServiceGroup(
  services: [messages, service], logger: Logger(label: "group") { _ in SwiftLogNoOpLogHandler() })

Thread.detachNewThread {
  guard readLine() != nil else { return }
  Task {
    await vault.lock()
    note("locked")
  }
}
if mode == "drain" {
  Task {
    let engine = try await messages.engine()
    while try await engine.statistics().messageCount > 0 {
      // Nothing announces that a queue is empty.
      try await Task.sleep(for: .milliseconds(20))
    }
    await group.triggerGracefulShutdown()
  }
}
do {
  try await group.run()
} catch let error as EngineError where error.code == .vaultLocked {
  exit(3)
}
