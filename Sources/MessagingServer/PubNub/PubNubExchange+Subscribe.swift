internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue
internal import Realtime

extension PubNubExchange {
  /// Answers with the events after a place, or waits for the next ones; without a place, with the end of the log.
  func subscribe(_ call: SubscribeCall) throws(PubNubRefusal) {
    let listener = call.listener
    let round = home.polls.round
    let decided = home.check(
      caller, .subscribe, channels: listener.channels, groups: listener.groups)
    if let refusal = caller.answer(to: decided) { return answer(refusal) }
    let filter = try filter(call)
    let subscription = try home.subscription(to: listener, of: caller.application)
    // Read before the join, so that the client gets its own join if it subscribes to presence.
    let place = call.place ?? home.realtime.place
    try join(listener)
    guard call.place != nil else { return answer(SubscribeEnvelope(place).response) }
    let polls = home.polls
    let realtime = home.realtime
    let poll = OpenPoll(
      exchange, caller, call, after: place, filter: filter, until: decided.end,
      polls.events,
      didEnd: { polls.remove($0) })
    exchange.onAbandon { poll.abandon(realtime) }
    poll.answerWithoutEvents(after: service.holdTime, realtime)
    poll.wait(for: subscription, in: realtime)
    polls.add(poll)
    // What changed since the decision did not reach the poll, which was not on the list. Later rounds find it there.
    if polls.round != round {
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
}

extension OpenHome {
  /// The members of each group that a call names; for `NAME-pnpres`, those of `NAME`.
  ///
  /// - Throws: a refusal if the call names more than ``PubNubRequest/maximumChannelCount`` channels with them.
  func members(
    of groups: [GroupName], beside channels: [ChannelName], in application: DirectoryEntry,
    _ family: PubNubFamily
  ) throws(PubNubRefusal) -> [(group: GroupName, channels: Set<ChannelName>)] {
    var presenceCount = channels.count(where: \.isPresence)
    var count = channels.count - presenceCount
    var found: [(group: GroupName, channels: Set<ChannelName>)] = []
    for group in groups {
      let members = directory.channels(of: group.base ?? group, of: application.id)
      if group.isPresence { presenceCount += members.count } else { count += members.count }
      guard max(count, presenceCount) <= PubNubRequest.maximumChannelCount else {
        throw .tooManyChannels(family)
      }
      found.append((group, members))
    }
    return found
  }

  /// The channels, patterns and members of groups that a listener gets events of.
  func subscription(
    to listener: PresenceCall, of application: DirectoryEntry
  ) throws(PubNubRefusal) -> Subscription {
    var groups: [ChannelGroup] = []
    for (group, members) in try members(
      of: listener.groups, beside: listener.channels, in: application, .subscribe)
    {
      groups.append(try polls.groups.group(group, members, of: application))
    }
    return Subscription(
      channels: try application.channels(listener.channels, .subscribe), groups: groups)
  }

  /// Decides again about waiting polls: those whose right has ended are refused, and those whose groups have changed
  /// listen to the new members.
  ///
  /// - Parameters:
  ///   - changes: what of the access has changed.
  ///   - groups: the groups whose members have changed.
  func recheckPolls(_ changes: Set<AccessChange>, groups: Set<DirectoryChanges.Group>) {
    let now = now()
    let isUnchanged = changes.isEmpty && groups.isEmpty
    let changed = Dictionary(grouping: groups, by: \.application)
      .mapValues { Set($0.map(\.name)) }
    for poll in isUnchanged ? polls.ended(at: now) : polls.beginRound() {
      let caller = poll.caller
      let isConcerned =
        poll.end.map { $0 <= now } ?? false
        || changes.contains { change in
          caller.principal.map { change.concerns($0, in: caller.application.id) } ?? false
        }
      if isConcerned { recheck(poll) }
      let hasChangedGroup = poll.call.listener.groups.contains {
        changed[caller.application.id]?.contains($0.base ?? $0) == true
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
    do throws(PubNubRefusal) {
      poll.wait(
        for: try subscription(to: poll.call.listener, of: poll.caller.application), in: realtime)
    } catch {
      poll.answer(error.response(at: place), realtime)
    }
  }
}
