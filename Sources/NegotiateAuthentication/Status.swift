internal import CGSSAPI

/// A mechanism of GSSAPI.
enum Mechanism {
  case spnego, kerberos

  /// A constant of this process.
  var identifier: gss_OID? {
    unsafe self == .spnego ? cgssapi_spnego() : cgssapi_kerberos()
  }
}

/// The failure of a call, in the library's words.
struct Status {
  let major: OM_uint32
  /// The library's words, which can contain those of a KDC or a server: not escaped.
  let text: String

  /// Reads the words; the library keeps the details for the thread of the call.
  init(_ major: OM_uint32, _ minor: OM_uint32, _ mechanism: Mechanism) {
    self.major = major
    // The detail alone says more than "unspecified failure" before it.
    let isUnspecified = cgssapi_routine_error(major) == OM_uint32(cgssapi_failure)
    let words = Self.words(major, GSS_C_GSS_CODE, mechanism)
    let detail = minor == 0 ? [] : Self.words(minor, GSS_C_MECH_CODE, mechanism)
    text = (isUnspecified && !detail.isEmpty ? detail : words + detail).joined(separator: ": ")
  }

  private static func words(
    _ status: OM_uint32, _ kind: Int32, _ mechanism: Mechanism
  ) -> [String] {
    var words: [String] = []
    var more: OM_uint32 = 0
    repeat {
      var minor: OM_uint32 = 0
      var buffer = unsafe gss_buffer_desc()
      defer { unsafe gss_release_buffer(&minor, &buffer) }
      guard
        unsafe cgssapi_failed(
          cgssapi_display(&minor, status, kind, mechanism.identifier, &more, &buffer)) == 0
      else {
        break
      }
      let bytes = unsafe [UInt8](
        UnsafeRawBufferPointer(start: buffer.value, count: min(buffer.length, 1000)))
      // Some texts of the library end with a zero byte.
      words.append(String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self))
    } while more != 0 && words.count < 4
    return words
  }
}
