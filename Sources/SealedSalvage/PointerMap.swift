internal import SealedVFS

/// The parents of pages, which auto-vacuum databases store:
/// <https://sqlite.org/fileformat2.html#pointer_map_or_ptrmap_pages>.
struct PointerMap {
  enum Entry: Equatable {
    case root
    case free
    /// A page that holds the rest of a row.
    case overflow
    case child(of: UInt32)
  }

  private static let entriesPerPage = UInt32(BTreePage.usableByteCount / 5)

  private let source: PageSource

  /// - Returns: nil for a database without such a map.
  init?(_ source: PageSource, settings: DatabaseSettings?) {
    self.source = source
    if let settings {
      if settings.autoVacuum == 0 { return nil }
    } else if !isPlausible {
      return nil
    }
  }

  static func mapPage(for number: UInt32) -> UInt32 {
    guard number >= 2 else { return 0 }
    let page = (number - 2) / (entriesPerPage + 1) * (entriesPerPage + 1) + 2
    return page == PageLayout.lockPageNumber ? page + 1 : page
  }

  /// The map's entry for a page; nil if the entry is lost or invalid.
  func entry(for number: UInt32) -> Entry? {
    let map = Self.mapPage(for: number)
    guard number > map, map >= 2, let page = source.page(map) else { return nil }
    let offset = 5 * Int(number - map - 1)
    guard offset + 5 <= BTreePage.usableByteCount else { return nil }
    let parent = page.bigEndianWord(at: offset + 1)
    switch page[offset] {
    case 1: return .root
    case 2: return .free
    case 3, 4: return .overflow
    case 5: return .child(of: parent)
    default: return nil
    }
  }

  /// The ancestors of a page, as far up as the map can be read.
  func ancestors(of number: UInt32) -> Set<UInt32> {
    var found: Set<UInt32> = []
    var current = number
    while case .child(let parent) = entry(for: current), found.insert(parent).inserted {
      current = parent
    }
    return found
  }

  /// Whether page 2 is a map with only valid entries, for a database without page 1.
  private var isPlausible: Bool {
    guard source.pageCount >= 3, source.page(2) != nil else { return false }
    return (3...min(source.pageCount, Self.entriesPerPage + 2)).allSatisfy { number in
      switch entry(for: number) {
      case .child(let parent): parent >= 1 && parent <= source.pageCount
      case nil: false
      default: true
      }
    }
  }
}
