import FileLayer
import Foundation
import SystemPackage
import TestSupport
import Testing

/// A KDC of the realm EXAMPLE.TEST with the user `ada` and the server `web.example.test`, and Apache, which demands
/// `Negotiate`: in a temporary folder, on free ports of this machine.
final class KerberosFixture: Sendable {
  static let skipReason = "the KDC or Apache is missing: scripts/install-dependencies --kerberos"
  static var isAvailable: Bool {
    ["usr/sbin/krb5kdc", "usr/sbin/kadmin.local", "usr/bin/kinit", "usr/sbin/apache2"].allSatisfy {
      FileManager.default.isExecutableFile(atPath: "\(root)/\($0)")
    }
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  static let host = "web.example.test"
  private static let root = Repository.path(".build/kerberos")
  /// The folder of Debian's libraries, whose name has the architecture.
  private static var libraries: String {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "\(root)/usr/lib")) ?? []
    return "\(root)/usr/lib/\(names.first { $0.hasSuffix("-linux-gnu") } ?? "")"
  }

  let kdcPort: UInt16
  let webPort: UInt16
  private let scratch = ScratchFolder()
  private nonisolated(unsafe) var servers: [Process] = []  // changed by init and deinit alone

  init() throws {
    let ports = try LoopbackSocket.freePorts(2)
    (kdcPort, webPort) = (ports[0], ports[1])
    // Apache gives up root's rights, and then reads its files as another user.
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o711], ofItemAtPath: scratch.path.string)
    try scratch.put(clientConfiguration(), at: "krb5.conf")
    try scratch.put(kdcConfiguration, at: "kdc.conf")
    try scratch.put("", at: "acl")
    try run("usr/sbin/kdb5_util", ["create", "-s", "-P", "master"])
    try run(
      "usr/sbin/kadmin.local", [],
      input: """
        addprinc -randkey ada
        ktadd -k \(scratch.path("ada.keytab")) ada
        addprinc -randkey HTTP/\(Self.host)
        ktadd -k \(scratch.path("web.keytab")) HTTP/\(Self.host)

        """)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o644], ofItemAtPath: scratch.path("web.keytab"))
    try startServer("usr/sbin/krb5kdc", ["-n"], port: kdcPort, log: "kdc.log")
    try login(to: "short-lived", lifetime: "1s")
    try login(to: "tickets", lifetime: "12h")
    try startApache()
  }

  deinit {
    for server in servers {
      // They block SIGTERM, as the thread does that starts them.
      kill(server.processIdentifier, SIGKILL)
      server.waitUntilExit()
    }
  }

  /// The name of a ticket cache.
  private func cache(_ name: String) -> String { "FILE:\(scratch.path(name))" }

  func login(to cache: String, lifetime: String) throws {
    try run(
      "usr/bin/kinit",
      ["-l", lifetime, "-c", self.cache(cache), "-k", "-t", scratch.path("ada.keytab"), "ada"])
  }

  /// Runs the client's program and returns its lines.
  ///
  /// - Parameters:
  ///   - url: the server's URL.
  ///   - port: where the client connects; by default Apache's port.
  ///   - cache: the ticket cache; by default one with a valid ticket.
  ///   - isDefault: whether the cache is the user's own, and not named by the program.
  ///   - configuration: the client's `krb5.conf`; by default the realm's.
  func get(
    _ url: String = "http://\(host)/", port: UInt16? = nil, cache: String = "tickets",
    isDefault: Bool = false, configuration: String? = nil
  ) async throws -> [String] {
    let folder = ScratchFolder()
    var environment = clientEnvironment
    var arguments = [url, "\(port ?? webPort)"]
    if isDefault {
      environment["KRB5CCNAME"] = self.cache(cache)
    } else {
      arguments.append(self.cache(cache))
    }
    if let configuration {
      try folder.put(configuration, at: "krb5.conf")
      environment["KRB5_CONFIG"] = folder.path("krb5.conf")
    }
    let (variables, words) = (environment, arguments)
    let program = try await onBlockingThread("negotiate-client") {
      try Program.run(Program.built("NegotiateClient"), words, environment: variables)
    }
    guard program.status == 0 else {
      throw Failure(description: "the client ended with \(program.status): \(program.errors)")
    }
    return program.text.split(separator: "\n").map(String.init)
  }

  /// Runs Debian's curl, which confirms the fixture.
  func curl(_ executable: String) throws -> String {
    var environment = clientEnvironment
    environment["KRB5CCNAME"] = cache("tickets")
    return try Program.run(
      executable,
      [
        "-s", "--negotiate", "-u", ":", "--resolve", "\(Self.host):\(webPort):127.0.0.1",
        "http://\(Self.host):\(webPort)/",
      ], environment: environment
    ).text
  }

  /// The client's `krb5.conf`.
  func clientConfiguration(realmOfServer: String = "EXAMPLE.TEST", kdcPort: UInt16? = nil) -> String
  {
    """
    [libdefaults]
      default_realm = EXAMPLE.TEST
      dns_lookup_kdc = false
      dns_lookup_realm = false
      dns_canonicalize_hostname = false
      rdns = false
      udp_preference_limit = 1
    [realms]
      EXAMPLE.TEST = {
        kdc = 127.0.0.1:\(kdcPort ?? self.kdcPort)
      }
    [domain_realm]
      .example.test = \(realmOfServer)

    """
  }

  private var kdcConfiguration: String {
    """
    [kdcdefaults]
      kdc_listen = 127.0.0.1:\(kdcPort)
      kdc_tcp_listen = 127.0.0.1:\(kdcPort)
    [realms]
      EXAMPLE.TEST = {
        database_name = \(scratch.path("principal"))
        key_stash_file = \(scratch.path("stash"))
        acl_file = \(scratch.path("acl"))
      }
    [dbmodules]
      db_module_dir = \(Self.libraries)/krb5/plugins/kdb
    [logging]
      kdc = FILE:\(scratch.path("kdc.log"))

    """
  }

  private func startApache() throws {
    let folder = scratch.path("web")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Data("welcome\n".utf8).write(to: URL(fileURLWithPath: "\(folder)/index.html"))
    let isRoot = geteuid() == 0
    if isRoot { chmod(folder, 0o777) }
    let modules = "\(Self.root)/usr/lib/apache2/modules"
    let loaded = [
      "mpm_prefork", "authn_core", "authz_core", "authz_user", "dir", "auth_gssapi",
    ].map { "LoadModule \($0)_module \(modules)/mod_\($0).so" }.joined(separator: "\n")
    try scratch.put(
      """
      ServerRoot \(folder)
      PidFile \(folder)/pid
      ErrorLog \(scratch.path("web.log"))
      DefaultRuntimeDir \(folder)
      Listen 127.0.0.1:\(webPort)
      ServerName \(Self.host)
      \(loaded)
      \(isRoot ? "User daemon\nGroup daemon" : "")
      DocumentRoot \(folder)
      DirectoryIndex index.html
      <Location "/">
        AuthType GSSAPI
        AuthName "the test"
        GssapiCredStore keytab:\(scratch.path("web.keytab"))
        GssapiAllowedMech krb5
        GssapiConnectionBound On
        Require valid-user
      </Location>

      """, at: "apache.conf")
    try startServer(
      "usr/sbin/apache2", ["-d", folder, "-f", scratch.path("apache.conf"), "-X"], port: webPort,
      log: "web.log")
  }

  // MARK: Processes

  private var clientEnvironment: [String: String] {
    ["PATH": "/usr/bin:/bin", "KRB5_CONFIG": scratch.path("krb5.conf"), "HOME": "/nonexistent"]
  }

  private var serverEnvironment: [String: String] {
    clientEnvironment.merging([
      "KRB5_KDC_PROFILE": scratch.path("kdc.conf"),
      "KRB5RCACHENAME": "file2:\(scratch.path("web"))/replays", "LD_LIBRARY_PATH": Self.libraries,
    ]) { $1 }
  }

  private func run(_ program: String, _ arguments: [String], input: String? = nil) throws {
    let finished = try Program.run(
      "\(Self.root)/\(program)", arguments, input: input.map { Array($0.utf8) },
      environment: serverEnvironment)
    guard finished.status == 0 else {
      throw Failure(description: "\(program): \(finished.text) \(finished.errors)")
    }
  }

  /// Starts a server and waits until it accepts connections.
  private func startServer(
    _ program: String, _ arguments: [String], port: UInt16, log: String
  ) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "\(Self.root)/\(program)")
    process.arguments = arguments
    process.environment = serverEnvironment
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try scratch.writing("\(log).output")
    process.standardError = process.standardOutput
    try process.run()
    servers.append(process)
    func report() -> String {
      let logs = [log, "\(log).output"].map { scratch.contents(of: $0) ?? "" }
      return "\(program) does not listen: \(logs.joined())"
    }
    try eventually(report()) {
      guard process.isRunning else { throw Failure(description: report()) }
      return LoopbackSocket.accepts(port)
    }
  }
}

/// Starts the servers for the tests of a suite, and ends them after its last test.
struct KerberosServers: SuiteTrait, TestScoping {
  func provideScope(
    for test: Test, testCase: Test.Case?,
    performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    let fixture = try await onBlockingThread("kerberos-fixture") { try KerberosFixture() }
    try await KerberosFixture.$current.withValue(fixture) { try await function() }
  }
}

extension KerberosFixture {
  @TaskLocal static var current: KerberosFixture?
}
