/// What a grant covers, and what an operation works on.
public enum Scope: Sendable, Hashable {
  /// The whole application: every channel and every group.
  case application
  /// A channel, or in a grant a pattern `a.*`.
  case channel(ChannelName)
  /// A channel group, or in a grant all groups, ``GroupName/all``.
  case group(GroupName)
  /// A consumer of a channel.
  indirect case consumer(Name, of: ChannelName)
  /// The metadata of a user, which PubNub's version 2 calls a uuid.
  case user(Name)

  /// The channel, for a channel and a consumer.
  var channel: ChannelName? {
    switch self {
    case .channel(let name), .consumer(_, let name): name
    case .application, .group, .user: nil
    }
  }
}

/// The object of an operation.
public struct Resource: Sendable, Hashable {
  /// The application, which the caller named by its subscribe key.
  public let application: ApplicationID

  /// What the operation works on.
  public let scope: Scope

  /// Makes a resource.
  public init(_ scope: Scope, of application: ApplicationID) {
    self.application = application
    self.scope = scope
  }
}

extension Scope: CustomStringConvertible {
  /// The kind and the name, such as `channel 'orders'`.
  public var description: String {
    switch self {
    case .application: "the application"
    case .channel(let name): "channel '\(name)'"
    case .group(.all): "all groups"
    case .group(let name): "group '\(name)'"
    case .consumer(let name, let channel): "consumer '\(name)' of channel '\(channel)'"
    case .user(let name): "user '\(name)'"
    }
  }
}
