/// The bounds and periods of presence.
package struct PresenceLimits: Sendable {
  /// The most users of an application who are present somewhere.
  ///
  /// Default: 100,000.
  package var maximumUserCount = 100_000
  /// The most channels of a user.
  ///
  /// Default: 3,000, for a call with 1,000 channels and a full group of 2,000.
  package var maximumChannelCount = 3_000
  /// The most pairs of a user and a channel in an application.
  ///
  /// Default: 1,000,000.
  package var maximumPresenceCount = 1_000_000
  /// The largest state of a user on a channel, in bytes.
  ///
  /// Default: 32 KiB.
  package var maximumStateByteCount = 32 << 10
  /// The most bytes of all states of an application.
  ///
  /// Default: 64 MiB.
  package var maximumTotalStateByteCount = 64 << 20

  /// How long a user stays present without a sign of life, if no call has said it.
  ///
  /// Default: 300 seconds.
  package var defaultTimeout = Duration.seconds(300)
  /// The shortest timeout; a shorter one is taken as this.
  ///
  /// Default: 1 second.
  package var minimumTimeout = Duration.seconds(1)
  /// The longest timeout; a longer one is taken as this.
  ///
  /// Default: an hour.
  package var maximumTimeout = Duration.seconds(3_600)

  /// A channel with more users than this announces joins, leaves and timeouts in intervals.
  ///
  /// Default: 20, as PubNub's.
  package var announceMaximum = 20
  /// The time from the first change to the event that announces it.
  ///
  /// Default: 10 seconds.
  package var announceInterval = Duration.seconds(10)
  /// Whether an interval event lists the users who came and went.
  ///
  /// Default: false, as PubNub's.
  package var announcesUsers = false
  /// The most users whom one interval event lists.
  ///
  /// Default: 300, so that ids of 92 bytes fit a message of 32 KiB.
  package var maximumAnnouncedCount = 300

  /// How long a leave holds against an earlier call that is handled after it.
  ///
  /// Default: 10 seconds.
  package var departureMemory = Duration.seconds(10)
  /// The most leaves of an application that are remembered.
  ///
  /// Default: 10,000.
  package var maximumDepartureCount = 10_000

  package init() {}
}

/// Why a call changed nothing.
package enum PresenceRefusal: Error, Sendable, Hashable {
  /// The application has its most users.
  case tooManyUsers
  /// The user would be on more channels than a user can.
  case tooManyChannels
  /// The application has its most pairs of a user and a channel.
  case tooManyPresences
  /// A state is too large.
  case stateTooLarge
  /// The states of the application would be too large together.
  case tooMuchState
}
