/// The events of a subscription, several at a time: an application that shows changes does not draw each of a burst.
public struct PubNubBatches: AsyncSequence, Sendable {
  /// Events in their order, at least one.
  public typealias Element = [PubNubEvent]

  let subscription: PubNubSubscription
  let interval: Duration

  /// Begins with the events that have come.
  public func makeAsyncIterator() -> Iterator {
    Iterator(subscription: subscription, interval: interval)
  }

  /// The iteration of one task.
  public struct Iterator: AsyncIteratorProtocol {
    let subscription: PubNubSubscription
    let interval: Duration
    private var next = ContinuousClock.now

    init(subscription: PubNubSubscription, interval: Duration) {
      self.subscription = subscription
      self.interval = interval
    }

    /// The events since the last batch; nil at the end.
    ///
    /// - Throws: as the subscription.
    public mutating func next() async throws(MessagingClientError) -> [PubNubEvent]? {
      guard (try? await Task.sleep(until: next, clock: .continuous)) != nil else { return nil }
      while true {
        let events = subscription.takeAll()
        if !events.isEmpty {
          next = .now + interval
          return events
        }
        guard try await subscription.poll() else { return nil }
      }
    }
  }
}

extension PubNubSubscription {
  /// The events in batches: the first immediately, and then at most one batch in each interval.
  ///
  /// What comes in between waits on the server, which loses nothing. So a burst of any length becomes two batches.
  public func batches(every interval: Duration) -> PubNubBatches {
    PubNubBatches(subscription: self, interval: interval)
  }
}

extension PubNubClient {
  /// Publishes the same value to several channels, such as one of each friend, some at a time.
  ///
  /// - Returns: for each channel the place of its message, or why it has none: a failure on one channel does not end
  ///   the others.
  /// - Throws: the error of `JSONEncoder`; nothing was published then.
  public func publish(
    _ value: some Encodable & Sendable, toEach channels: [String],
    _ publication: PubNubPublication = .init()
  ) async throws -> [String: Result<Timetoken, MessagingClientError>] {
    let json = try Self.json(value)
    return await withTaskGroup(of: (String, Result<Timetoken, MessagingClientError>).self) {
      group in
      var results: [String: Result<Timetoken, MessagingClientError>] = [:]
      var rest = Set(channels).makeIterator()
      var count = 0
      while true {
        while count < Self.concurrentCount, let channel = rest.next() {
          count += 1
          group.addTask {
            let result: Result<Timetoken, MessagingClientError>
            do throws(MessagingClientError) {
              result = .success(try await self.publish(json: json, to: channel, publication))
            } catch {
              result = .failure(error)
            }
            return (channel, result)
          }
        }
        guard let (channel, result) = await group.next() else { return results }
        results[channel] = result
        count -= 1
      }
    }
  }

  /// The most publications at the same time.
  private static let concurrentCount = 8
}
