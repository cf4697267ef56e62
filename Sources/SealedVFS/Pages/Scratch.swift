internal import Glibc

/// Memory of a file's own for sealed and opened bytes, wiped when the file is closed.
///
/// Made once per file, so that no page costs an allocation.
@safe struct Scratch: ~Copyable {
  let pointer: UnsafeMutableRawPointer
  let byteCount: Int

  init(byteCount: Int) {
    unsafe pointer = .allocate(byteCount: byteCount, alignment: 64)
    self.byteCount = byteCount
    unsafe memset(pointer, 0, byteCount)
  }

  deinit {
    unsafe explicit_bzero(pointer, byteCount)
    unsafe pointer.deallocate()
  }

  /// A part of the memory, read-only.
  func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(start: pointer + range.lowerBound, count: range.count)
  }
}
