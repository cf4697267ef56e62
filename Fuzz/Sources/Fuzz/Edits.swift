/// Edits a template as the fuzzer's input describes, so that a few bytes of input reach any
/// position of a file.
///
/// The first byte selects the mode. Records follow: position (3 bytes), kind and length (1 byte),
/// then bytes.
struct Edits {
  let mode: UInt8
  private let records: ArraySlice<UInt8>

  init?(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return nil }
    self.mode = mode
    records = Array(input)[1...]
  }

  func apply(to bytes: inout [UInt8]) {
    var rest = records
    while rest.count >= 5, !bytes.isEmpty {
      let place = rest.prefix(3).reduce(0) { $0 << 8 | Int($1) } % bytes.count
      let control = rest[rest.startIndex + 3]
      let count = min(Int(control & 0x1F) + 1, rest.count - 4, bytes.count - place)
      let source = rest.dropFirst(4).prefix(count)
      rest = rest.dropFirst(4 + count)
      switch control >> 5 {
      case 0: bytes.removeLast(bytes.count - place)
      case 1: bytes.replaceSubrange(place..<place + count, with: repeatElement(0, count: count))
      case 2:
        for (index, byte) in source.enumerated() { bytes[place + index] ^= byte }
      case 3:
        // Copies 512 bytes from one position to another.
        let to = (Int(source.first ?? 0) << 9 | Int(source.dropFirst().first ?? 0)) % bytes.count
        let length = min(512, bytes.count - max(place, to))
        bytes.replaceSubrange(to..<to + length, with: Array(bytes[place..<place + length]))
      default: bytes.replaceSubrange(place..<place + count, with: source)
      }
    }
  }
}
