import Foundation
import SealedSQLite
import SystemPackage
import VaultCrypto

/// The cost of a key change compared with `VACUUM INTO` of the same rows on a plain file.
///
/// The key change is durable on return. SQLite does not synchronize the file of `VACUUM INTO`.
enum KeyChangeCost {
  static func measure(folder: FilePath, rounds: Int) throws -> Comparison {
    var comparison = Comparison("change of key / plain VACUUM INTO, 130 MiB", goal: .atMost(2))
    let sealedFolder = folder.appending("sealed")
    let plainFolder = folder.appending("plain")
    for path in [sealedFolder, plainFolder] {
      try FileManager.default.createDirectory(
        atPath: path.string, withIntermediateDirectories: true)
    }
    let recipe = DatabaseRecipe(
      name: "rekeyed", schema: Workload.large.schema,
      fill: Workload.large.fill.map {
        Pass(statements: $0.statements, count: $0.count / 2, countPerTransaction: 1000)
      }, settings: [])
    var key = SecretBytes.random(byteCount: 32)
    let path: FilePath
    do {
      let sealed = SQLiteContestant(folder: sealedFolder, isSealed: true, key: key.copy())
      try sealed.prepare(recipe)
      path = sealed.path(of: recipe)
    }
    let plain = SQLiteContestant(folder: plainFolder, isSealed: false)
    try plain.prepare(recipe)
    for round in 0..<rounds {
      let newKey = SecretBytes.random(byteCount: 32)
      let copy = plainFolder.appending("copy-\(round)").string
      let vacuum = Pass(statements: ["VACUUM INTO '\(copy)'"], count: 1)
      let before =
        round.isMultiple(of: 2) ? try plain.run(vacuum, on: recipe, as: .pass) : nil
      let ours = try Cost.of { _ = try SealedDatabase.changeKey(at: path, from: key, to: newKey) }
      let other = try before ?? plain.run(vacuum, on: recipe, as: .pass)
      try FileManager.default.removeItem(atPath: copy)
      comparison.add(ours: ours, other: other)
      key = newKey
    }
    return comparison
  }
}
