internal import AccessControl
internal import ApplicationStore
internal import StrictJSON

/// A request to the authorization endpoint, `POST /pusher/auth/KEY`, as stock clients send it for a channel that needs
/// an authority.
struct PusherAuthorizing: Sendable {
  /// The key of the application is behind it.
  private static let path = "/pusher/auth/".utf8

  /// The application's key.
  let key: String
  /// The form, read as parameters are: clients leave characters unencoded, and `;` is one of a name.
  private let form: RawRequest

  /// Nil for another path.
  init?(_ request: RawRequest) {
    guard request.method == "POST", request.path.starts(with: Self.path) else { return nil }
    let key = request.path.dropFirst(Self.path.count)
    guard !key.isEmpty, !key.contains(UInt8(ascii: "/")) else { return nil }
    self.key = String(decoding: PercentEncoding.decode(key), as: UTF8.self)
    form = RawRequest(method: request.method, target: [UInt8(ascii: "?")] + request.body)
  }

  /// The connection and the channel.
  ///
  /// - Throws: ``PusherFault``.
  func subject() throws(PusherFault) -> (socketID: String, channel: PusherChannel) {
    guard let socketID = text("socket_id"), PusherSession.isSocketID(socketID) else {
      throw PusherFault(400, "socket_id is missing or not valid")
    }
    guard let channel = text("channel_name").flatMap({ PusherChannel($0) }) else {
      throw PusherFault(400, "channel_name is missing or not valid")
    }
    switch channel.kind {
    case .public, .user: throw PusherFault(400, "a public channel needs no authorization")
    case .encrypted:
      throw PusherFault(
        403, "this server has no keys of encrypted channels: use an endpoint of your own")
    case .private, .presence: return (socketID, channel)
    }
  }

  private func text(_ name: StaticString) -> String? {
    form.only(name).flatMap { String(validating: $0, as: UTF8.self) }
  }
}

extension PusherService {
  /// Answers a request to the authorization endpoint.
  func answer(_ exchange: HTTPExchange, _ authorizing: PusherAuthorizing) {
    exchange.describe(.pusherAuthorization)
    do throws(PusherFault) {
      guard let home = gate.home else { throw PusherFault(503, gate.refusal) }
      guard let application = home.directory.application(subscribeKey: authorizing.key) else {
        throw PusherFault(404, "no application has this key")
      }
      exchange.describe(application.id)
      let (socketID, channel) = try authorizing.subject()
      Task {
        exchange.answer(
          await home.authorize(exchange.request, socketID, channel, of: application))
      }
    } catch {
      exchange.answer(error.response)
    }
  }
}

extension OpenHome {
  /// The answer of the authorization endpoint.
  fileprivate func authorize(
    _ request: HTTPRequest, _ socketID: String, _ channel: PusherChannel,
    of application: DirectoryEntry
  ) async -> HTTPResponse {
    do throws(LoginRefusal) {
      guard request.isProtected else { throw .unprotected }
      guard let authorization = authorization(of: request, to: application) else {
        throw LoginRefusal(
          status: 401, message: "credentials are missing",
          challenges: challenges(ofCredentialsFor: application))
      }
      let principal = try await principal(authorization, of: request, to: application)
      let decision = directory.decide(
        principal, .subscribe, Resource(.channel(channel.name), of: application.id), at: now())
      guard decision.isAllowed else {
        throw LoginRefusal(
          status: 403,
          message: decision.ground(of: .subscribe, on: .channel(channel.name)))
      }
      return try answer(principal, authorization, socketID, channel, application)
    } catch {
      return error.response
    }
  }

  private func answer(
    _ principal: Principal, _ authorization: Authorization, _ socketID: String,
    _ channel: PusherChannel, _ application: DirectoryEntry
  ) throws(LoginRefusal) -> HTTPResponse {
    let auth: String
    let userID: String?
    switch (principal, authorization) {
    case (.user(let user, let password?), _):
      do {
        auth = try PusherUserSignature.sign(
          user, password: password, socketID: socketID, channel: channel.name,
          under: application.application)
      } catch {
        throw LoginRefusal(status: 500, message: "the channel cannot be signed")
      }
      userID = user.text
    case (.token(let token, _), .token(let text)):
      // The token itself decides, so that it ends with its end and its revocation.
      auth = String(decoding: text, as: UTF8.self)
      userID = token.contents.authorizedUserID
    default: throw LoginRefusal(status: 403, message: "the credentials name no one")
    }
    var members = [JSONMember("auth", .string(auth))]
    if channel.kind == .presence {
      guard let userID else {
        throw LoginRefusal(status: 403, message: "the token names no user to be present")
      }
      let channelData = JSONValue.object([JSONMember("user_id", .string(userID))]).text
      do throws(PusherRefusal) {
        _ = try PusherMember(channelData)
      } catch {
        throw LoginRefusal(status: 403, message: error.message)
      }
      members.append(JSONMember("channel_data", .string(channelData)))
    }
    return .pusher(json: .object(members))
  }
}
