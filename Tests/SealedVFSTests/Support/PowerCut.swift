import FileLayer
import SystemPackage
import Testing

/// What a power cut takes of the steps before it.
enum PowerCut: Sendable, CustomTestStringConvertible {
  /// Nothing: the process was killed.
  case nothing
  /// All that was not synchronized.
  case everythingUnsynchronized
  /// Some of it, by a die with this seed: the system writes blocks in any order, and removals and
  /// renames when it likes.
  case some(seed: UInt64)

  var testDescription: String {
    switch self {
    case .nothing: "nothing lost"
    case .everythingUnsynchronized: "everything unsynchronized lost"
    case .some(let seed): "some of it lost, seed \(seed)"
    }
  }

  /// The files that are there afterwards.
  func files(
    _ events: [FileEvent], initial: [FilePath: [UInt8]]
  ) -> [FilePath: [UInt8]] {
    switch self {
    case .nothing: DiskReplay(events, initialFiles: initial).files(after: .nothing)
    case .everythingUnsynchronized:
      DiskReplay(events, initialFiles: initial).files(after: .everythingUnsynchronized)
    case .some(let seed):
      DiskReplay(Self.thinned(events, seed: seed), initialFiles: initial).files(after: .nothing)
    }
  }

  /// A block of a file: what of it reached the disk is a beginning of what was written to it.
  private struct Block: Hashable {
    static let byteCount: Int64 = 4096
    let path: FilePath
    let number: Int64
  }

  private static func thinned(_ events: [FileEvent], seed: UInt64) -> [FileEvent] {
    var dice = TamperingTests.Dice(state: seed &+ UInt64(events.count) << 8)
    var lastSync: [FilePath: Int] = [:]
    for (index, event) in events.enumerated() {
      switch event {
      case .synchronize(let path), .synchronizeDirectory(let path): lastSync[path] = index
      default: break
      }
    }
    var writesOwed: [Block: Int] = [:]
    func pieces(_ event: FileEvent, _ index: Int) -> [(Block, FileEvent)] {
      guard case .write(let path, let offset, let bytes) = event, index > lastSync[path] ?? -1
      else { return [] }
      var pieces: [(Block, FileEvent)] = []
      var start = offset
      while start < offset + Int64(bytes.count) {
        let block = Block(path: path, number: start / Block.byteCount)
        let end = min((block.number + 1) * Block.byteCount, offset + Int64(bytes.count))
        let piece = Array(bytes[Int(start - offset)..<Int(end - offset)])
        pieces.append((block, .write(path, offset: start, bytes: piece)))
        start = end
      }
      return pieces
    }
    for (index, event) in events.enumerated() {
      for (block, _) in pieces(event, index) { writesOwed[block, default: 0] += 1 }
    }
    var writesLeft: [Block: Int] = [:]
    for block in writesOwed.keys.sorted(by: {
      ($0.path.string, $0.number) < ($1.path.string, $1.number)
    }) {
      writesLeft[block] = Int.random(in: 0...(writesOwed[block] ?? 0), using: &dice)
    }
    var kept: [FileEvent] = []
    for (index, event) in events.enumerated() {
      switch event {
      case .write(let path, _, _) where index > lastSync[path] ?? -1:
        for (block, piece) in pieces(event, index) where (writesLeft[block] ?? 0) > 0 {
          writesLeft[block, default: 0] -= 1
          kept.append(piece)
        }
      case .remove(let path), .rename(let path, _):
        let isDurable = index < lastSync[path.removingLastComponent()] ?? -1
        if isDurable || Bool.random(using: &dice) { kept.append(event) }
      default:
        kept.append(event)
      }
    }
    return kept
  }
}
