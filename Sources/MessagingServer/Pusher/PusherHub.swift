internal import AccessControl
internal import Foundation
internal import NIOCore
internal import Synchronization

/// Who is on which channel of Pusher's protocol.
///
/// It is in memory alone: a restart and a lock of the vault end all connections.
final class PusherHub: Sendable {
  typealias Handle = SessionHandle<PusherConnection>

  /// The most subscriptions of all connections.
  static let maximumSubscriptionCount = 1_000_000

  /// The subscribers of a channel.
  private struct Room {
    /// Each with its user, on presence channels.
    var subscribers: [ObjectIdentifier: (handle: Handle, userID: String?)] = [:]
    var roster = PusherRoster()

    mutating func add(
      _ handle: Handle, _ member: PusherMember?, to name: String, _ note: (WebhookEvent) -> Void
    ) throws(PusherRefusal) {
      let isNewMember = try member.map { (member) throws(PusherRefusal) in try roster.add(member) }
      if subscribers.isEmpty { note(.channelOccupied(name)) }
      if let member, isNewMember == true {
        // In the lock, so that all get the changes in one order.
        for (other, _) in subscribers.values {
          other.tell { $0.send(.memberAdded(channel: name, member)) }
        }
        note(.memberAdded(channel: name, userID: member.id))
      }
      subscribers[ObjectIdentifier(handle)] = (handle, member?.id)
    }

    var occupancy: Occupancy {
      Occupancy(subscriptionCount: subscribers.count, userIDs: roster.userIDs)
    }
  }

  /// What the HTTP API says of a channel.
  struct Occupancy: Sendable, Equatable {
    var subscriptionCount = 0
    /// The users of a presence channel.
    var userIDs: [String] = []
  }

  private struct State {
    var rooms: [ApplicationID: [String: Room]] = [:]
    var subscriptionCount = 0
  }

  private let state = Mutex(State())
  private let note: @Sendable (WebhookEvent, ApplicationID) -> Void

  /// - Parameter note: takes what webhooks are told of, in its order; it must not block.
  init(_ note: @escaping @Sendable (WebhookEvent, ApplicationID) -> Void = { _, _ in }) {
    self.note = note
  }

  /// Ends the connections on which the application has signed a user, on a presence channel.
  func terminate(_ userID: String, of application: ApplicationID) {
    let handles = state.withLock { state in
      (state.rooms[application] ?? [:]).values.flatMap { room in
        room.subscribers.values.filter { $0.userID?.utf8.elementsEqual(userID.utf8) == true }
          .map(\.handle)
      }
    }
    for handle in handles { handle.tell { $0.end(.terminated) } }
  }

  /// Adds a subscriber, and tells the others of a user who is new.
  ///
  /// - Returns: who is present; nil if the channel is none of presence.
  /// - Throws: ``PusherRefusal`` if the channel is full, or the server has too many subscriptions.
  func join(
    _ handle: Handle, _ channel: PusherChannel, _ member: PusherMember?
  ) throws(PusherRefusal) -> PusherRoster? {
    try state.withLock { (state) throws(PusherRefusal) in
      let name = channel.name.text
      if state.rooms[handle.application]?[name]?.subscribers[ObjectIdentifier(handle)] == nil {
        guard state.subscriptionCount < Self.maximumSubscriptionCount else {
          throw .limit("the server has too many subscriptions")
        }
        // In its place, so that its subscribers are not copied. A new room is not full.
        try state.rooms[handle.application, default: [:]][name, default: Room()]
          .add(handle, member, to: name) { note($0, handle.application) }
        state.subscriptionCount += 1
      }
      return member.flatMap { _ in state.rooms[handle.application]?[name]?.roster }
    }
  }

  /// Removes a subscriber, and tells the others of a user whose last connection it was.
  func leave(_ handle: Handle, _ channel: PusherChannel) {
    state.withLock { state in
      let name = channel.name.text
      guard
        let removed = state.rooms[handle.application]?[name]?.subscribers
          .removeValue(forKey: ObjectIdentifier(handle))
      else { return }
      state.subscriptionCount -= 1
      if let userID = removed.userID,
        state.rooms[handle.application]?[name]?.roster.remove(userID) == true
      {
        for (other, _) in state.rooms[handle.application]?[name]?.subscribers.values ?? [:].values {
          other.tell { $0.send(.memberRemoved(channel: name, userID: userID)) }
        }
        note(.memberRemoved(channel: name, userID: userID), handle.application)
      }
      if state.rooms[handle.application]?[name]?.subscribers.isEmpty == true {
        state.rooms[handle.application]?[name] = nil
        note(.channelVacated(name), handle.application)
      }
    }
  }

  /// What is known of a channel.
  func occupancy(of channel: String, in application: ApplicationID) -> Occupancy {
    state.withLock { $0.rooms[application]?[channel]?.occupancy ?? Occupancy() }
  }

  /// The channels that have subscribers, by their names.
  func occupied(
    in application: ApplicationID, prefix: String
  ) -> [(channel: String, occupancy: Occupancy)] {
    state.withLock { $0.rooms[application] ?? [:] }
      .filter { $0.key.utf8.starts(with: prefix.utf8) }
      .sorted { $0.key < $1.key }.map { ($0.key, $0.value.occupancy) }
  }
}
