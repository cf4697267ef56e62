public import CoreMetrics
public import Logging
public import MessagingQueue

/// The settings of a ``WorkerService``; each property states its default.
public struct WorkerConfiguration: Sendable {
  /// The most jobs of all channels at a time, at least 1.
  ///
  /// Default: 10.
  public var concurrency = 10

  /// How long a job is leased.
  ///
  /// The lease is extended at a third of it, as long as the handler works.
  ///
  /// After a kill, its jobs come again when it ends. From 100 milliseconds to 366 days; default: 30
  /// seconds.
  public var lease: Duration = .seconds(30)

  static let minimumLease = Duration.milliseconds(100)

  /// How often a job is delivered before it becomes a dead letter; nil for no limit.
  ///
  /// Each start of the service sets it for the consumers of its workers. Default: 20. With the
  /// default back-off the last attempt comes about two days after the first, so that a failure over a
  /// weekend can be repaired. (Oban's default is 20 too, River's 25.)
  public var maximumAttempts: Int? = Self.defaultMaximumAttempts

  static let defaultMaximumAttempts = 20

  /// The delay before a failed job is tried again.
  public var backoff = Backoff()

  /// How long running handlers can finish during a shutdown.
  ///
  /// Then their tasks are cancelled, and the jobs of those that throw are released without a counted
  /// attempt. Default: 20 seconds.
  public var drainTimeout: Duration = .seconds(20)

  /// Called after the commit that made a dead letter of a job, with its reason.
  ///
  /// At most once for a job: a kill between the commit and the call loses the call. A job whose last
  /// lease ended, as after a kill, is reported to no one. `MessagingEngine.deadLetters` lists all.
  /// The job holds its slot until the call returns, also during a shutdown.
  /// Default: nothing.
  public var onDeath: @Sendable (Delivery, String) async -> Void = { _, _ in }

  /// Takes the metrics; `docs/reference/observation.md` lists them.
  ///
  /// Default: the factory of the process when this is made.
  public var metricsFactory: any MetricsFactory = MetricsSystem.factory

  /// Which channels have metrics of their own, labelled with their names.
  ///
  /// Default: none, as a name can reveal what a channel is for.
  public var channelMetrics = ChannelMetrics.none

  /// Takes the log lines, which never contain a payload, a header, a reason or the text of an error.
  ///
  /// Default: a logger labelled `datavault.worker`.
  public var logger = Logger(label: "datavault.worker")

  /// Numbers from 0 to 1 for the jitter of delays.
  ///
  /// Default: the system's.
  public var random: @Sendable () -> Double = { Double.random(in: 0...1) }

  /// Makes a configuration with the defaults.
  public init() {}
}
