internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue
internal import Realtime

extension PubNubExchange {
  /// Answers with the events after a place, or waits for the next ones; without a place, with the end of the log.
  func subscribe(_ call: SubscribeCall) throws(PubNubRefusal) {
    let listener = call.listener
    var round = home.polls.round
    let decided = home.check(
      caller, .subscribe, channels: listener.channels, groups: listener.groups)
    if let refusal = caller.answer(to: decided) { return answer(refusal) }
    let filter = try filter(call)
    let subscription = try subscription(listener)
    // Read before the join, so that the client gets its own join if it subscribes to presence.
    let place = call.place ?? home.realtime.place
    try join(listener)
    guard call.place != nil else { return answer(SubscribeEnvelope(place).response) }
    let polls = home.polls
    let realtime = home.realtime
    let poll = OpenPoll(
      exchange, caller, call, after: place, filter: filter, until: decided.end,
      didEnd: { polls.remove($0) })
    exchange.onAbandon { poll.abandon(realtime) }
    poll.answerWithoutEvents(after: service.holdTime, realtime)
    poll.wait(for: subscription, in: realtime)
    polls.add(poll)
    // What changed since the decision did not reach the poll, which was not on the list.
    while polls.round != round {
      round = polls.round
      home.recheck(poll)
      home.resubscribe(poll)
    }
  }

  private func filter(_ call: SubscribeCall) throws(PubNubRefusal) -> FilterExpression? {
    guard let text = call.filter, !text.isEmpty else { return nil }
    do {
      return try FilterExpression(text)
    } catch {
      throw PubNubRefusal(.subscribe, 481, error.description)
    }
  }

  /// The channels, patterns and members of groups that a listener gets events of.
  private func subscription(_ listener: PresenceCall) throws(PubNubRefusal) -> Subscription {
    var groups: [String: Set<Channel>] = [:]
    for group in listener.groups {
      groups[group.text] = Set(try channels(home.members(of: group, in: caller.application)))
    }
    return Subscription(channels: try channels(listener.channels), groups: groups)
  }
}

extension OpenHome {
  /// The channels of a group; for `NAME-pnpres`, the presence channels of the members of `NAME`.
  func members(of group: GroupName, in application: DirectoryEntry) -> Set<ChannelName> {
    guard group.isPresence else { return directory.channels(of: group, of: application.id) }
    guard let base = group.base else { return [] }
    return Set(
      directory.channels(of: base, of: application.id).compactMap(\.presenceChannel))
  }

  /// Decides again about waiting polls: those whose right has ended are refused, and those whose groups have changed
  /// listen to the new members.
  ///
  /// - Parameters:
  ///   - changes: what of the access has changed.
  ///   - groups: the groups whose members have changed.
  func recheckPolls(_ changes: Set<AccessChange>, groups: Set<DirectoryChanges.Group>) {
    let now = now()
    for poll in polls.beginRound() {
      let caller = poll.caller
      let isConcerned =
        poll.end.map { $0 <= now } ?? false
        || changes.contains { change in
          caller.principal.map { change.concerns($0, in: caller.application.id) } ?? false
        }
      if isConcerned { recheck(poll) }
      let changed = groups.filter { $0.application == caller.application.id }.map(\.name)
      let hasChangedGroup = poll.call.listener.groups.contains {
        changed.contains($0.base ?? $0)
      }
      if hasChangedGroup { resubscribe(poll) }
    }
  }

  fileprivate func recheck(_ poll: OpenPoll) {
    let listener = poll.call.listener
    let decided = check(
      poll.caller, .subscribe, channels: listener.channels, groups: listener.groups)
    if let refusal = poll.caller.answer(to: decided) {
      poll.answer(refusal, realtime)
    } else {
      poll.end = decided.end
    }
  }

  fileprivate func resubscribe(_ poll: OpenPoll) {
    let application = poll.caller.application
    var groups: [String: Set<Channel>] = [:]
    for group in poll.call.listener.groups {
      groups[group.text] = Set(
        members(of: group, in: application).compactMap { try? application.channel($0) })
    }
    let channels = poll.call.listener.channels.compactMap { try? application.channel($0) }
    poll.wait(for: Subscription(channels: channels, groups: groups), in: realtime)
  }
}
