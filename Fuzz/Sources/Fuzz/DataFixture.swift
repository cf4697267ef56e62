@_spi(Testing) import DataVault
import Foundation
import VaultCrypto

/// Sealed data: changed, sealed again in another order, opened with another context, and sealed and
/// opened.
///
/// The first byte of the input selects one of these. The input also determines the random lengths
/// of the pieces.
final class DataFixture {
  private static let lengths = [0, 1, 65535, 65536, 65537, 131_072, 140_000]
  private static let context: [UInt8] = [1, 2, 3]
  private static let dataKeys =
    Array(
      "\"\(Data(SealedStream.dataKeys.joined()).base64EncodedString())".utf8
    ).filter { $0 != UInt8(ascii: "=") } + [UInt8(ascii: "\"")]

  private let streams = [0, 1].map { SealedStream(keyNumber: $0, context: DataFixture.context) }
  private let templates: [(plaintext: [UInt8], sealed: [UInt8])]
  private var pieces = Pieces([])

  init() {
    let streams = streams
    templates = Self.lengths.enumerated().map { number, length in
      let plaintext = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }
      return (plaintext, streams[number % 2].seal(SealedStream.chunks(of: plaintext)))
    }
    for template in templates {
      require(
        open(template.sealed, context: Self.context).isWhole, "an unchanged stream is refused")
    }
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard input.count > 1 else { return }
    pieces = Pieces(input)
    let rest = UnsafeBufferPointer(rebasing: input.dropFirst())
    switch input[0] & 3 {
    case 0: changed(rest)
    case 1: sealedAnew(Array(rest))
    case 2: underAnotherContext(rest)
    default: thereAndBack(Array(rest))
    }
  }

  /// A change must be refused, and the plaintext before it must be correct.
  private func changed(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    let template = templates[Int(edits.mode) % templates.count]
    var sealed = template.sealed
    edits.apply(to: &sealed)
    let outcome = open(sealed, context: Self.context)
    require(outcome.isWhole == (sealed == template.sealed), "a changed stream is accepted")
    require(template.plaintext.starts(with: outcome.given), "a wrong byte is returned")
    require(
      outcome.isWhole || outcome.given.count % SealedStream.byteCount == 0,
      "part of a chunk is returned")
  }

  private func underAnotherContext(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    var context = Self.context
    edits.apply(to: &context)
    let template = templates[Int(edits.mode) % templates.count]
    let outcome = open(template.sealed, context: context)
    require(outcome.isWhole == (context == Self.context), "another context is accepted")
    require(outcome.isWhole || outcome.given.isEmpty, "a byte of another context is returned")
  }

  /// Authentic chunks in any order, with any length and mark: only a stream that the format allows
  /// must open.
  private func sealedAnew(_ input: [UInt8]) {
    var chunks: [SealedStream.Chunk] = []
    for start in stride(from: 0, to: min(input.count - 2, 18), by: 3) {
      chunks.append(chunk(input[start], Int(input[start + 1]) << 8 | Int(input[start + 2]), chunks))
    }
    let sealed = streams[Int(pieces.next() >> 40) % 2].seal(chunks)
    let outcome = open(sealed, context: Self.context)
    let plaintext = chunks.flatMap(\.plaintext)
    require(
      outcome.isWhole == isStream(chunks), "invalid chunks are accepted, or valid chunks refused")
    require(plaintext.starts(with: outcome.given), "a wrong byte is returned")
    require(!outcome.isWhole || outcome.given == plaintext, "the returned plaintext is incomplete")
  }

  private func chunk(
    _ kind: UInt8, _ length: Int, _ before: [SealedStream.Chunk]
  ) -> SealedStream.Chunk {
    let count = [SealedStream.byteCount, 0, length, SealedStream.byteCount][Int(kind >> 1 & 3)]
    let index = UInt64(before.count)
    return SealedStream.Chunk(
      plaintext: [UInt8](repeating: UInt8(truncatingIfNeeded: before.count + 1), count: count),
      index: [index, index + 1, index &- 1, index | 1 << 32][Int(kind >> 3 & 3)],
      mark: kind & 0x20 == 0 ? kind & 1 : 2)
  }

  private func isStream(_ chunks: [SealedStream.Chunk]) -> Bool {
    guard let last = chunks.last, last.mark == 1 else { return false }
    return chunks.enumerated().allSatisfy { $0.element.index == UInt64($0.offset) }
      && chunks.dropLast().allSatisfy {
        $0.mark == 0 && $0.plaintext.count == SealedStream.byteCount
      } && (!last.plaintext.isEmpty || chunks.count == 1)
  }

  private func thereAndBack(_ input: [UInt8]) {
    guard input.count >= 3 else { return }
    let length = input.prefix(3).reduce(0) { $0 << 8 | Int($1) } % 200_000
    let plaintext = (0..<length).map { input[$0 % input.count] }
    guard var encryptor = DataProbe.encryptor(dataKeys: Self.dataKeys, context: input) else {
      preconditionFailure("a new stream cannot be started")
    }
    var sealed = encryptor.header
    for piece in pieces.cut(plaintext) {
      guard let bytes = try? encryptor.update(Array(piece).span.bytes) else {
        preconditionFailure("a piece cannot be sealed")
      }
      sealed += bytes
    }
    guard let end = try? encryptor.finish() else { preconditionFailure("the end cannot be sealed") }
    sealed += end
    let chunkCount = max(1, (length + SealedStream.byteCount - 1) / SealedStream.byteCount)
    require(sealed.count == 44 + length + 16 * chunkCount, "the length differs from the format's")
    let outcome = open(sealed, context: input)
    require(outcome.isWhole && outcome.given == plaintext, "the opened plaintext differs")
  }

  /// What a reader returns for a stream in pieces, and whether it reports that the stream is
  /// complete.
  private func open(_ sealed: [UInt8], context: [UInt8]) -> (given: [UInt8], isWhole: Bool) {
    var given: [UInt8] = []
    do throws(VaultError) {
      guard
        var decryptor = try DataProbe.decryptor(
          dataKeys: Self.dataKeys, header: Array(sealed.prefix(44)), context: context)
      else { return (given, false) }
      for piece in pieces.cut(Array(sealed.dropFirst(44))) {
        given += try decryptor.update(Array(piece).span.bytes).withUnsafeBytes { Array($0) }
      }
      given += try decryptor.finish().withUnsafeBytes { Array($0) }
      return (given, true)
    } catch {
      let codes: [VaultError.Code] = [.truncated, .damaged, .notSealedData, .newerVersion]
      require(codes.contains(error.code), "an unexpected error: \(error)")
      return (given, false)
    }
  }
}
