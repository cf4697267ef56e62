internal import COpenSSL

extension OSSL_PARAM {
  /// One OSSL_PARAM(3), for what has no argument of its own.
  ///
  /// Its name is a pointer that OpenSSL follows later, so it must be static:
  /// the pointer that Swift makes of a String for one call dangles after it.
  init(
    _ name: StaticString, _ type: Int32, _ data: UnsafeMutableRawPointer?, _ byteCount: Int
  ) {
    unsafe self.init(
      key: UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self),
      data_type: UInt32(type), data: data, data_size: byteCount, return_size: -1)
  }
}
