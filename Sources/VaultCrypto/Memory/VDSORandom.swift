internal import Glibc

/// The kernel's generator without a system call: `__vdso_getrandom`, from Linux 6.11 on.
///
/// glibc 2.41 calls it in the same way; see vdso(7) and the kernel's `lib/vdso/getrandom.c`. Its
/// state is in memory that the kernel specifies: wiped in a child of fork(2), never swapped, and
/// renewed whenever the kernel's own generator is, as after the cloning of a virtual machine. Only
/// one thread at a time can use a state.
@safe final class VDSORandom: @unchecked Sendable {
  // Sendable: only the source of `unshared()` holds it, and one thread at a time uses that source.

  /// buffer, its length, flags, state, its length; returns the number of bytes, or -errno.
  private typealias Function =
    @convention(c) (
      UnsafeMutableRawPointer?, Int, UInt32, UnsafeMutableRawPointer?, Int
    ) -> Int

  /// The kernel's requirements for the memory: `struct vgetrandom_opaque_params`, 64 bytes.
  private struct StateRequirements {
    var byteCount: UInt32 = 0
    var protection: UInt32 = 0
    var flags: UInt32 = 0
    var reserved: InlineArray<13, UInt32> = InlineArray(repeating: 0)
  }

  private static let function: Function? = {
    guard let vDSO = unsafe dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD),
      let symbol = unsafe dlsym(vDSO, "__vdso_getrandom")
    else { return nil }
    return unsafe unsafeBitCast(symbol, to: Function.self)
  }()

  private let function: Function
  private let state: UnsafeMutableRawPointer
  private let stateByteCount: Int
  private let mappedByteCount = Int(getpagesize())

  /// Makes a generator; nil if the kernel does not offer it.
  init?() {
    var requirements = StateRequirements()
    guard let function = unsafe Self.function, unsafe function(nil, 0, 0, &requirements, -1) == 0,
      requirements.byteCount > 0, Int(requirements.byteCount) <= mappedByteCount,
      let memory = unsafe mmap(
        nil, mappedByteCount, Int32(requirements.protection), Int32(requirements.flags), -1, 0),
      unsafe memory != MAP_FAILED
    else { return nil }
    unsafe self.function = function
    unsafe state = memory
    stateByteCount = Int(requirements.byteCount)
  }

  deinit {
    unsafe munmap(state, mappedByteCount)
  }

  /// Fills the buffer; returns false if the kernel did not fill it.
  func fill(_ target: UnsafeMutableRawBufferPointer) -> Bool {
    unsafe function(target.baseAddress, target.count, 0, state, stateByteCount) == target.count
  }
}
