internal import Glibc
internal import Synchronization

/// Tells a process from its parent without a system call: memory that the kernel empties in a
/// child (`MADV_WIPEONFORK`, madvise(2)) holds the id of the process that it is true for.
@safe enum ProcessMark {
  /// The id of this process.
  static var current: Int32 {
    guard let memory = unsafe memory else { return getpid() }
    let mark = unsafe memory.pointee.load(ordering: .relaxed)
    if mark != 0 { return mark }
    let id = getpid()
    unsafe memory.pointee.store(id, ordering: .relaxed)
    return id
  }

  /// A page of its own, for ever; nil where the kernel cannot empty it.
  // nonisolated(unsafe): the pointer is constant, what it points to is atomic.
  nonisolated(unsafe) private static let memory: UnsafeMutablePointer<Atomic<Int32>>? = {
    let byteCount = Int(getpagesize())
    let wipeOnFork: Int32 = 18
    guard
      let page = unsafe mmap(
        nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      unsafe page != MAP_FAILED
    else { return nil }
    guard unsafe madvise(page, byteCount, wipeOnFork) == 0 else {
      unsafe munmap(page, byteCount)
      return nil
    }
    let memory = unsafe page.bindMemory(to: Atomic<Int32>.self, capacity: 1)
    unsafe memory.initialize(to: Atomic(0))
    return unsafe memory
  }()
}
