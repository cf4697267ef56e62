import Logging
import MessagingClient

/// A client that writes each step of its connection to standard error.
func clientWithLog() throws -> STOMPClient {
  var logger = Logger(label: "shop.messages") { StreamLogHandler.standardError(label: $0) }
  logger.logLevel = .debug
  // So that the lines of several clients can be told apart.
  logger[metadataKey: "user"] = "17"

  var configuration = STOMPConfiguration(
    server: "stomps://messages.example.com:61613", application: "shop")
  configuration.logger = logger
  return try STOMPClient(configuration)
}
