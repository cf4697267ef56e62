import Glibc
import MessagingClient
import NegotiateAuthentication
import TestSupport
import VaultCrypto

/// Gets a URL by `Negotiate`, for NegotiateAuthenticationTests: a program of its own, because `KRB5_CONFIG` belongs to a
/// process.
///
/// Usage: `NegotiateClient URL PORT [CACHE]`. The URL's host is the name of the server, which is at `PORT` of this
/// machine. It makes two connections with one handler, and asks twice on each. It prints a line for each status, each
/// answer, and each error.
@main enum Program {
  static func main() async {
    let arguments = CommandLine.arguments
    do {
      let location = try Location(arguments[1])
      let cache = arguments.count > 3 ? arguments[3] : nil
      let handler = NegotiateChallengeHandler.kerberos(credentialCache: cache)
      var limits = ChallengeGuard.Limits()
      limits.sendsCredentialsOverPlainHTTPBeyondLoopback = true
      let challengeGuard = ChallengeGuard(limits)
      for _ in 0..<2 {
        let authenticator = Authenticator(
          connectionTo: location.origin, handler: handler, challengeGuard: challengeGuard)
        let connection = try Connection(port: UInt16(arguments[2]) ?? 0)
        for _ in 0..<2 { try await get(location, connection, authenticator) }
        await authenticator.closed()
      }
    } catch let error as AuthenticationError {
      print("error \(error.code): \(error)")
      if let cause = error.underlying as? GSSAPIError { print("cause \(cause.code): \(cause)") }
    } catch {
      print("error \(error)")
    }
  }

  private static func get(
    _ location: Location, _ connection: Connection, _ authenticator: Authenticator
  ) async throws {
    var authorization: String?
    while true {
      let fields = authorization.map { "Authorization: \($0)\r\n" } ?? ""
      connection.write(
        "GET \(location.path) HTTP/1.1\r\nHost: \(location.origin.host)\r\n\(fields)\r\n")
      let response = try connection.response()
      print("status \(response.status) \(response.body)")
      guard response.status == 401 else {
        for field in response.challenges { print("field \(field)") }
        return try await authenticator.opened(response.challenges)
      }
      let answer = try await authenticator.answer(response.challenges, at: location)
      authorization = answer.authorization.withBytes { bytes in
        let bytes = (0..<bytes.byteCount).map {
          bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self)
        }
        return String(decoding: bytes, as: UTF8.self)
      }
      print("answer \(authorization ?? "")")
    }
  }
}

/// A connection to this machine, which reads just enough of HTTP/1.1.
final class Connection {
  struct Failure: Error {}

  struct Response {
    var status = 0
    var challenges: [String] = []
    var body = ""
  }

  private let socket: LoopbackSocket
  private var received: [UInt8] = []

  init(port: UInt16) throws {
    socket = try LoopbackSocket(connectedTo: port)
  }

  func write(_ text: String) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        send(socket.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  func response() throws -> Response {
    var response = Response()
    response.status = Int(try line().split(separator: " ").dropFirst().first ?? "") ?? 0
    var byteCount = 0
    while true {
      let line = try line()
      if line.isEmpty { break }
      guard let colon = line.firstIndex(of: ":") else { throw Failure() }
      let value = line[line.index(after: colon)...].drop { $0 == " " }
      switch line[..<colon].lowercased() {
      case "www-authenticate": response.challenges.append(String(value))
      case "content-length": byteCount = Int(value) ?? 0
      default: break
      }
    }
    while received.count < byteCount { try receive() }
    if response.status == 200 {
      response.body = String(decoding: received.prefix(byteCount), as: UTF8.self)
    }
    received.removeFirst(byteCount)
    return response
  }

  private func line() throws -> String {
    while true {
      if let end = received.firstIndex(of: 0x0A) {
        defer { received.removeFirst(end + 1) }
        return String(decoding: received[..<end].filter { $0 != 0x0D }, as: UTF8.self)
      }
      try receive()
    }
  }

  private func receive() throws {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = recv(socket.descriptor, &buffer, buffer.count, 0)
    guard count > 0 else { throw Failure() }
    received += buffer.prefix(count)
  }
}
