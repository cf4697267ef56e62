import Foundation
import SystemPackage

extension Servers {
  /// Starts RabbitMQ with its STOMP plugin; nil if it is not available.
  func startRabbitMQ(in folder: FilePath) -> Started? {
    peer("RabbitMQ", in: folder) { peers, port in
      let erlang = peers.appending("usr/lib/erlang")
      let programs = try entry(of: erlang, prefix: "erts-").appending("bin")
      let rabbit = try entry(
        of: peers.appending("usr/lib/rabbitmq/lib"), prefix: "rabbitmq_server-")
      try """
      listeners.tcp = none
      stomp.listeners.tcp.1 = 127.0.0.1:\(port)
      """.write(
        toFile: folder.appending("rabbitmq.conf").string, atomically: true, encoding: .utf8)
      try "[rabbitmq_stomp].".write(
        toFile: folder.appending("enabled_plugins").string, atomically: true, encoding: .utf8)
      return Started(
        process: try ServerProcess(
          [programs.appending("erlexec").string] + rabbitArguments, port: port,
          environment: [
            "HOME": folder.string, "ROOTDIR": erlang.string, "BINDIR": programs.string,
            "EMU": "beam", "PROGNAME": "erl", "ERL_LIBS": rabbit.appending("plugins").string,
            "ERL_MAX_ETS_TABLES": "50000", "ERL_CRASH_DUMP_SECONDS": "0",
            "RABBITMQ_NODENAME": Self.rabbitNode, "RABBITMQ_HOME": rabbit.string,
            "RABBITMQ_BASE": folder.string, "RABBITMQ_LOGS": "-",
            "RABBITMQ_LOG_BASE": folder.string,
            "RABBITMQ_MNESIA_BASE": folder.appending("mnesia").string,
            "RABBITMQ_PLUGINS_DIR": rabbit.appending("plugins").string,
            "RABBITMQ_CONFIG_FILE": folder.appending("rabbitmq.conf").string,
            "RABBITMQ_ADVANCED_CONFIG_FILE": folder.appending("advanced.config").string,
            "RABBITMQ_CONF_ENV_FILE": folder.appending("rabbitmq-env.conf").string,
            "RABBITMQ_ENABLED_PLUGINS_FILE": folder.appending("enabled_plugins").string,
          ]), service: "stomp:/:guest:guest")
    }
  }

  private static let rabbitNode = "benchmark@localhost"

  /// The arguments of RabbitMQ's script, which runs an Erlang at a fixed path.
  ///
  /// The node has the name that its database needs, but no port for other nodes and no port mapper. The number of the
  /// port is only reported.
  private var rabbitArguments: [String] {
    """
    -noinput -s rabbit boot -boot start_sasl -hidden -sname \(Self.rabbitNode) -dist_listen false
    -start_epmd false -erl_epmd_port 25672 +W w +MBas ageffcbf +MHas ageffcbf +MBlmbcs 512
    +MHlmbcs 512 +MMmcs 30 +P 1048576 +t 5000000 +stbt db +zdbbl 128000 +sbwt none +sbwtdcpu none
    +sbwtdio none -syslog logger [] -syslog syslog_error_logger false
    -kernel prevent_overlapping_partitions false
    """.split(whereSeparator: \.isWhitespace).map(String.init)
  }
}
