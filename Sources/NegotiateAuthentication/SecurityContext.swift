internal import CGSSAPI
internal import Glibc

/// The C handles of one authentication, which are released with it.
///
/// Its calls block: they read files, and ask name servers and the KDC. After an error it can only be released.
@safe struct SecurityContext: ~Copyable {
  /// The steps of an authentication.
  enum State {
    case new
    /// The server's next token is missing.
    case waiting
    /// Both sides have authenticated each other.
    case established
    case failed
  }

  private(set) var state = State.new
  private let peer: String
  private let credentialCache: String?
  private var name: gss_name_t?
  private var credential: gss_cred_id_t?
  private var context: gss_ctx_id_t?

  /// - Parameters:
  ///   - peer: the name of the service: `HTTP@host`.
  ///   - credentialCache: nil for the default one.
  init(peer: String, credentialCache: String?) {
    self.peer = peer
    self.credentialCache = credentialCache
    unsafe name = nil
    unsafe credential = nil
    unsafe context = nil
  }

  deinit {
    // A copy, because C wants to write to the variables.
    var (minor, name, credential, context) = unsafe (
      OM_uint32(0), self.name, self.credential, self.context
    )
    unsafe gss_delete_sec_context(&minor, &context, nil)
    unsafe gss_release_cred(&minor, &credential)
    unsafe gss_release_name(&minor, &name)
  }

  /// Makes the first token.
  mutating func begin() throws(GSSAPIError) -> [UInt8] {
    state = .failed
    var minor: OM_uint32 = 0
    let major = unsafe peer.withCString {
      unsafe cgssapi_import_service(&minor, $0, strlen($0), &name)
    }
    try check(major, minor)
    do throws(GSSAPIError) {
      unsafe credential = try acquire(.spnego, nil)
      try check(unsafe cgssapi_restrict(&minor, credential), minor)
      return try step(nil)
    } catch {
      try checkTickets()
      throw error
    }
  }

  /// Throws what is wrong with the tickets, if anything is: SPNEGO does not say it.
  ///
  /// Only after a failure: to ask how long they are valid would choose one of several caches too early.
  private func checkTickets() throws(GSSAPIError) {
    var (minor, lifetime) = (OM_uint32(0), OM_uint32(0))
    var credential = unsafe try acquire(.kerberos, &lifetime)
    unsafe gss_release_cred(&minor, &credential)
    guard lifetime > 0 else { throw .credentialsExpired(peer) }
  }

  /// Acquires the credentials for a mechanism, with the seconds that they are valid.
  private func acquire(
    _ mechanism: Mechanism, _ lifetime: UnsafeMutablePointer<OM_uint32>?
  ) throws(GSSAPIError) -> gss_cred_id_t? {
    var minor: OM_uint32 = 0
    var credential: gss_cred_id_t?
    let major =
      if let credentialCache {
        unsafe credentialCache.withCString {
          unsafe cgssapi_acquire(&minor, mechanism.identifier, $0, &credential, lifetime)
        }
      } else {
        unsafe cgssapi_acquire(&minor, mechanism.identifier, nil, &credential, lifetime)
      }
    try check(major, minor, mechanism)
    return unsafe credential
  }

  /// Takes the server's token and makes the next one, which can be empty.
  mutating func `continue`(_ serverToken: [UInt8]) throws(GSSAPIError) -> [UInt8] {
    try step(serverToken)
  }

  private mutating func step(_ serverToken: [UInt8]?) throws(GSSAPIError) -> [UInt8] {
    state = .failed
    var minor: OM_uint32 = 0
    var flags: OM_uint32 = 0
    var output = unsafe gss_buffer_desc()
    defer { unsafe Self.release(&output) }
    let major =
      if let serverToken {
        unsafe serverToken.withUnsafeBytes {
          unsafe cgssapi_step(
            &minor, credential, &context, name, $0.baseAddress, $0.count, &output, &flags)
        }
      } else {
        unsafe cgssapi_step(&minor, credential, &context, name, nil, 0, &output, &flags)
      }
    try check(major, minor)
    guard cgssapi_supplementary_errors(major) == 0 else { throw .invalidServerToken(peer) }
    let byteCount = unsafe output.length
    guard byteCount <= GSSAPIContext.maximumTokenByteCount else {
      throw .failed(peer, "the ticket is too large: its token has \(byteCount) bytes")
    }
    if cgssapi_is_continued(major) != 0 {
      state = .waiting
    } else {
      guard flags & OM_uint32(GSS_C_MUTUAL_FLAG) != 0 else { throw .serverNotAuthenticated(peer) }
      state = .established
    }
    return unsafe [UInt8](UnsafeRawBufferPointer(start: output.value, count: byteCount))
  }

  private func check(
    _ major: OM_uint32, _ minor: OM_uint32, _ mechanism: Mechanism = .spnego
  ) throws(GSSAPIError) {
    guard cgssapi_failed(major) != 0 else { return }
    throw GSSAPIError(Status(major, minor, mechanism), peer: peer, credentialCache: credentialCache)
  }

  /// Wipes and releases a buffer of the library.
  private static func release(_ buffer: inout gss_buffer_desc) {
    if let value = unsafe buffer.value { unsafe explicit_bzero(value, buffer.length) }
    var minor: OM_uint32 = 0
    unsafe gss_release_buffer(&minor, &buffer)
  }
}
