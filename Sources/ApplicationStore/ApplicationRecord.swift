package import AccessControl
package import Foundation

/// What the tables say about an application, without its secret key.
package struct ApplicationRecord: Sendable, Hashable {
  /// The number, counted from 1001 and never used again.
  package let id: ApplicationID
  /// The name, which never changes.
  package let name: String
  /// `pub-c-` and a UUID; not secret.
  package let publishKey: String
  /// `sub-c-` and a UUID; not secret.
  package let subscribeKey: String
  /// Whether everyone can publish and subscribe.
  package var isOpen: Bool
  /// When it was added.
  package let created: Date
  /// How long its channels keep messages.
  package var retention: ApplicationRetention
}

/// How long the channels of an application keep messages, and how many bytes of them.
package struct ApplicationRetention: Sendable, Hashable {
  /// 7 days and 1 GiB.
  package static let standard = ApplicationRetention(minutes: 10_080, byteCount: 1 << 30)

  /// The longest age in minutes: 10 years.
  package static let maximumMinutes = 5_256_000

  /// The greatest size in bytes: 2^53 - 1.
  package static let maximumByteCount = 1 << 53 - 1

  /// The age from which messages are removed, in minutes.
  package let minutes: Int

  /// The bytes of payloads and headers in all channels together, above which publishing is refused.
  package let byteCount: Int

  private init(minutes: Int, byteCount: Int) {
    self.minutes = minutes
    self.byteCount = byteCount
  }

  /// Checks the limits.
  ///
  /// - Parameters:
  ///   - maximumMinutes: 1 to ``maximumMinutes``.
  ///   - maximumByteCount: 1 to ``maximumByteCount``.
  /// - Throws: `invalidArgument`.
  package init(
    maximumMinutes: Int, maximumByteCount: Int
  ) throws(ApplicationStoreError) {
    guard (1...Self.maximumMinutes).contains(maximumMinutes) else {
      throw ApplicationStoreError(
        .invalidArgument, "messages cannot be kept for \(maximumMinutes) minutes",
        hint: "use 1 to \(Self.maximumMinutes)")
    }
    guard (1...Self.maximumByteCount).contains(maximumByteCount) else {
      throw ApplicationStoreError(
        .invalidArgument, "an application cannot keep \(maximumByteCount) bytes of messages",
        hint: "use 1 to \(Self.maximumByteCount)")
    }
    self.init(minutes: maximumMinutes, byteCount: maximumByteCount)
  }
}

/// How many rows the tables take.
package struct ApplicationLimits: Sendable {
  /// Applications.
  ///
  /// Default: 100.
  package var applicationCount = 100

  /// Grants and revoked tokens of an application.
  ///
  /// Default: 100,000.
  package var grantCount = 100_000

  /// Grants and revoked tokens of all applications.
  ///
  /// Default: 1,000,000.
  package var totalGrantCount = 1_000_000

  /// Channel groups of an application.
  ///
  /// Default: 1,000.
  package var groupCount = 1_000

  /// Channels of a group.
  ///
  /// Default: 2,000.
  package var groupChannelCount = 2_000

  /// Channels of all groups of an application.
  ///
  /// Default: 100,000.
  package var memberCount = 100_000

  /// Channels of all groups of all applications.
  ///
  /// Default: 1,000,000.
  package var totalMemberCount = 1_000_000

  /// Users of an application.
  ///
  /// Default: 10,000.
  package var userCount = 10_000

  /// Users of all applications.
  ///
  /// Default: 100,000.
  package var totalUserCount = 100_000

  /// Roles of a user.
  ///
  /// Default: 32.
  package var roleCount = 32

  /// Webhooks of an application.
  ///
  /// Default: 10.
  package var webhookCount = 10

  /// Webhooks of all applications.
  ///
  /// Default: 100.
  package var totalWebhookCount = 100

  /// The iterations of PBKDF2 for new passwords.
  ///
  /// Default: 300,000.
  package var passwordIterationCount = RealmHasher.standardIterationCount

  /// How many changes a reader can be behind without loading all tables again.
  ///
  /// Default: 10,000.
  package var changeCount = 10_000

  /// Makes the default limits.
  package init() {}
}
