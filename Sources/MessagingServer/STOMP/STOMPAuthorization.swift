internal import AccessControl
internal import ApplicationStore
internal import Foundation

extension OpenHome {
  /// Finds the application that a client names, and who the client is.
  ///
  /// - Throws: ``STOMPEnding``.
  func authenticate(
    _ connecting: STOMPConnecting, isProtected: Bool
  ) throws(STOMPEnding) -> (DirectoryEntry, Principal) {
    let login = connecting.login ?? ""
    let passcode = Array((connecting.passcode ?? "").utf8)
    // Clients whose host is the server's name, or that send none, name the application by its key.
    let named = connecting.host.flatMap { directory.application(named: $0) }
    guard let application = named ?? directory.application(publishKey: login) else {
      throw STOMPEnding(
        message: "host names no application, and login is no publish key", status: 404)
    }
    if login.isEmpty, passcode.isEmpty { return (application, .anonymous) }
    guard login == application.application.publishKey else {
      guard let principal = user(login, passcode, of: application) else {
        throw .forbidden("login is not the publish key of the application")
      }
      return (application, principal)
    }
    if passcode.isEmpty { return (application, .anonymous) }
    if application.application.secretKey.isEqual(to: passcode) {
      guard isProtected else {
        throw .forbidden("the secret key is good only over TLS or loopback")
      }
      return (application, .signed(application.id))
    }
    do {
      switch try application.signer.read(passcode) {
      case .token(let token):
        // The client names no user, so the token does.
        return (application, .token(token, userID: token.contents.authorizedUserID))
      case .forged: break
      case .other:
        if passcode.count <= AuthKeyHasher.maximumByteCount,
          let hash = try directory.hash(passcode, of: application.id)
        {
          return (application, .authKey(hash))
        }
      }
    } catch {
      throw .failed
    }
    throw .forbidden("the passcode is neither an auth key nor a token of the application")
  }

  /// The user of the application's realm with this name and password; nil if there is none.
  ///
  /// There are no realms yet.
  private func user(
    _ name: String, _ password: [UInt8], of application: DirectoryEntry
  ) -> Principal? {
    nil
  }
}
