internal import SealedVFS

/// A page of a b-tree: <https://sqlite.org/fileformat2.html#b_tree_pages>.
///
/// Any bytes can be read without leaving the page: an authentic page can still hold invalid data.
struct BTreePage {
  enum Kind: UInt8 {
    case indexInterior = 2
    case tableInterior = 5
    case indexLeaf = 10
    case tableLeaf = 13

    var isInterior: Bool { self == .indexInterior || self == .tableInterior }
    var isTable: Bool { self == .tableInterior || self == .tableLeaf }
  }

  /// The bytes of a page that SQLite uses: 4096 minus the 40 reserved ones.
  static let usableByteCount = PageLayout.contentByteCount

  let number: UInt32
  let kind: Kind
  let cells: [Cell]
  /// The number of cells that the page lists and that lie outside it.
  let brokenCellCount: Int
  /// The last child of an interior page.
  let rightChild: UInt32

  /// One entry; the page's kind decides which parts it has.
  struct Cell {
    var child: UInt32 = 0
    var rowID: Int64 = 0
    var payload: Payload?
  }

  /// The location of a record: a beginning in the page, and the rest in a chain of overflow pages.
  struct Payload {
    let byteCount: Int
    let local: ArraySlice<UInt8>
    let overflowPage: UInt32
  }

  /// Reads a page; nil if it is not a b-tree page.
  init?(_ bytes: [UInt8], number: UInt32) {
    let start = number == 1 ? 100 : 0
    guard bytes.count >= Self.usableByteCount, let kind = Kind(rawValue: bytes[start]) else {
      return nil
    }
    let headerByteCount = kind.isInterior ? 12 : 8
    let count = Int(bytes[start + 3]) << 8 | Int(bytes[start + 4])
    let first = start + headerByteCount
    guard first + 2 * count <= Self.usableByteCount else { return nil }
    self.number = number
    self.kind = kind
    rightChild = kind.isInterior ? bytes.bigEndianWord(at: start + 8) : 0
    var cells: [Cell] = []
    cells.reserveCapacity(count)
    for index in 0..<count {
      let offset = Int(bytes[first + 2 * index]) << 8 | Int(bytes[first + 2 * index + 1])
      if offset >= first + 2 * count, let cell = try? Self.cell(kind, bytes, offset) {
        cells.append(cell)
      }
    }
    self.cells = cells
    brokenCellCount = count - cells.count
  }

  private static func cell(
    _ kind: Kind, _ bytes: [UInt8], _ offset: Int
  ) throws(InvalidBytes) -> Cell {
    guard offset < usableByteCount else { throw InvalidBytes() }
    var reader = ByteReader(bytes[offset..<usableByteCount])
    var cell = Cell()
    if kind.isInterior { cell.child = try reader.word() }
    let byteCount = kind == .tableInterior ? nil : try reader.varint()
    if kind.isTable { cell.rowID = try reader.varint() }
    if let byteCount { cell.payload = try payload(kind, Int(byteCount), &reader) }
    return cell
  }

  /// Reads the part of a record that lies in the page:
  /// <https://sqlite.org/fileformat2.html#cell_payload>.
  private static func payload(
    _ kind: Kind, _ byteCount: Int, _ reader: inout ByteReader
  ) throws(InvalidBytes) -> Payload {
    let usable = usableByteCount
    let most = kind == .tableLeaf ? usable - 35 : (usable - 12) * 64 / 255 - 23
    let least = (usable - 12) * 32 / 255 - 23
    guard byteCount >= 0, byteCount <= Int(Int32.max) else { throw InvalidBytes() }
    if byteCount <= most {
      return Payload(byteCount: byteCount, local: try reader.bytes(byteCount), overflowPage: 0)
    }
    let fitting = least + (byteCount - least) % (usable - 4)
    let local = try reader.bytes(fitting <= most ? fitting : least)
    return Payload(byteCount: byteCount, local: local, overflowPage: try reader.word())
  }
}

/// Bytes that end too early, or that mean nothing where they stand.
struct InvalidBytes: Error {}

/// Reads numbers from the front of some bytes.
struct ByteReader {
  private(set) var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) {
    rest = bytes
  }

  mutating func bytes(_ count: Int) throws(InvalidBytes) -> ArraySlice<UInt8> {
    guard count >= 0, count <= rest.count else { throw InvalidBytes() }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  mutating func word() throws(InvalidBytes) -> UInt32 {
    try bytes(4).reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// A signed number, big endian, of 1 to 8 bytes.
  mutating func integer(_ byteCount: Int) throws(InvalidBytes) -> Int64 {
    let bytes = try bytes(byteCount)
    return bytes.reduce(bytes.first ?? 0 >= 0x80 ? -1 : 0) { $0 << 8 | Int64($1) }
  }

  /// SQLite's number of one to nine bytes: <https://sqlite.org/fileformat2.html#varint>.
  mutating func varint() throws(InvalidBytes) -> Int64 {
    var value: UInt64 = 0
    for _ in 0..<8 {
      guard let byte = rest.popFirst() else { throw InvalidBytes() }
      value = value << 7 | UInt64(byte & 0x7F)
      if byte < 0x80 { return Int64(bitPattern: value) }
    }
    guard let byte = rest.popFirst() else { throw InvalidBytes() }
    return Int64(bitPattern: value << 8 | UInt64(byte))
  }
}
