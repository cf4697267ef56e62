/// The names of the engine's metrics; `docs/observation.md` has what they mean.
///
/// One scheme for all: `datavault_`, what is measured, and as the last word its unit, or `total` for a
/// counter. It suits Prometheus, and other systems take it as it is.
enum MetricName: String, CaseIterable {
  // Counters.
  case published = "datavault_messages_published_total"
  case received = "datavault_messages_received_total"
  case redelivered = "datavault_messages_redelivered_total"
  case acknowledged = "datavault_messages_acknowledged_total"
  case released = "datavault_messages_released_total"
  case expired = "datavault_messages_expired_total"
  case deadLettered = "datavault_messages_dead_lettered_total"
  case redriven = "datavault_messages_redriven_total"
  case retired = "datavault_messages_retired_total"
  case purged = "datavault_messages_purged_total"
  case leasesExpired = "datavault_leases_expired_total"

  // A recorder and timers.
  case commitVerbs = "datavault_commit_verbs"
  case commitWork = "datavault_commit_work_seconds"
  case commitSync = "datavault_commit_sync_seconds"

  // Gauges over all channels.
  case logMessages = "datavault_log_messages"
  case logBytes = "datavault_log_bytes"
  case ready = "datavault_ready_messages"
  case leased = "datavault_leased_messages"
  case delayed = "datavault_delayed_messages"
  case waiting = "datavault_waiting_messages"
  case dead = "datavault_dead_messages"
  case oldestAge = "datavault_oldest_age_seconds"
  case unnamedChannels = "datavault_unnamed_channels"

  // Gauges of a channel.
  case channelMessages = "datavault_channel_messages"
  case channelBytes = "datavault_channel_bytes"

  // Gauges of a channel's consumer.
  case consumerReady = "datavault_consumer_ready_messages"
  case consumerLeased = "datavault_consumer_leased_messages"
  case consumerDelayed = "datavault_consumer_delayed_messages"
  case consumerWaiting = "datavault_consumer_waiting_messages"
  case consumerDead = "datavault_consumer_dead_messages"
  case consumerOldestAge = "datavault_consumer_oldest_age_seconds"
}
