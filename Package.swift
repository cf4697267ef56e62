// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [
  .strictMemorySafety(),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let system = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics")
let serviceLifecycle = Target.Dependency.product(
  name: "ServiceLifecycle", package: "swift-service-lifecycle")
let unixSignals = Target.Dependency.product(
  name: "UnixSignals", package: "swift-service-lifecycle")
let argumentParser = Target.Dependency.product(
  name: "ArgumentParser", package: "swift-argument-parser")
let nio = ["NIOCore", "NIOPosix", "NIOHTTP1", "NIOWebSocket"].map { network($0, "swift-nio") }
let nioSSL = network("NIOSSL", "swift-nio-ssl")

/// A product that only the message server uses: a dependent that writes `traits: []` does not fetch it.
func network(_ name: String, _ package: String) -> Target.Dependency {
  .product(name: name, package: package, condition: .when(traits: ["Network"]))
}

/// A library target and what lies beneath it.
func module(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

/// A test target, free of strict memory safety: tests reach for C on purpose.
func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(
    name: name, dependencies: dependencies + ["TestSupport"],
    swiftSettings: Array(settings.dropFirst()))
}

/// A target of Tests/Support that several test targets use; not a product.
func support(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(
    name: name, dependencies: dependencies, path: "Tests/Support/\(name)",
    swiftSettings: Array(settings.dropFirst()))
}

let package = Package(
  name: "DataVault",
  products: [
    .library(name: "VaultCrypto", targets: ["VaultCrypto"]),
    .library(name: "DataVault", targets: ["DataVault"]),
    .library(name: "SealedVFS", targets: ["SealedVFS"]),
    .library(name: "SealedSQLite", targets: ["SealedSQLite"]),
    .library(name: "VaultedDatabase", targets: ["VaultedDatabase"]),
    .library(name: "MessagingQueue", targets: ["MessagingQueue"]),
    .library(name: "MessagingQueueLifecycle", targets: ["MessagingQueueLifecycle"]),
    .library(name: "MessageCipher", targets: ["MessageCipher"]),
    .library(name: "MessagingClient", targets: ["MessagingClient"]),
    .library(name: "NegotiateAuthentication", targets: ["NegotiateAuthentication"]),
    .library(name: "PusherEncryption", targets: ["PusherEncryption"]),
    .library(name: "AccessControl", targets: ["AccessControl", "StrictJSON"]),
    .library(name: "DataVaultTesting", targets: ["DataVaultTesting"]),
    .library(name: "SecretServiceStore", targets: ["SecretServiceStore"]),
    .library(name: "DesktopKeyring", targets: ["DesktopKeyring"]),
    // libsealedsqlite.so, which the sqlite3 shell and Python load: scripts/extension.
    .library(name: "sealedsqlite", type: .dynamic, targets: ["SealedSQLiteExtension"]),
    .executable(name: "datavault", targets: ["DataVaultCommand"]),
    .executable(name: "datavaultd", targets: ["DataVaultServerCommand"]),
  ],
  traits: [
    .trait(name: "Network", description: "What only the message server and its clients use."),
    .default(enabledTraits: ["Network"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/groue/GRDB.swift", .upToNextMinor(from: "7.10.0")),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
  ],
  targets: [
    // C, as the distribution ships it.
    .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(
      name: "CKeyutils", pkgConfig: "libkeyutils", providers: [.apt(["libkeyutils-dev"])]),
    // GIO's headers and library lie beside GObject's, whose flags SwiftPM takes without a warning.
    .systemLibrary(
      name: "CGIO", pkgConfig: "gobject-2.0", providers: [.apt(["libglib2.0-dev"])]),
    // So do libsecret's.
    .systemLibrary(
      name: "CLibsecret", pkgConfig: "gobject-2.0", providers: [.apt(["libsecret-1-dev"])]),

    // Its pkg-config flags have -isystem; headers and library lie in the compiler's own paths.
    .systemLibrary(name: "CGSSAPI", providers: [.apt(["libkrb5-dev"])]),
    .systemLibrary(name: "CNATS", providers: [.apt(["libnats-dev"])]),
    .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),

    // The house, bottom up. Arrows point down only: docs/explanation/architecture.md.
    module("FileLayer", [system]),
    module("VaultCrypto", ["COpenSSL"]),
    module("DataVault", ["VaultCrypto", "FileLayer", "CKeyutils", system]),
    module("SealedVFS", ["VaultCrypto", "FileLayer", "CSQLite", system]),
    module("SealedSQLiteExtension", ["SealedVFS", "CSQLite"]),
    module("SealedSalvage", ["SealedVFS", "VaultCrypto", "FileLayer", "CSQLite", system]),
    module(
      "SealedSQLite", ["SealedSalvage", "SealedVFS", "VaultCrypto", "FileLayer", grdb, system]),
    module(
      "VaultedDatabase",
      [
        "DataVault", "SealedSQLite", "SealedSalvage", "SealedVFS", "VaultCrypto", "FileLayer", grdb,
        system,
      ]),
    module(
      "MessagingQueue",
      [
        "VaultedDatabase", "SealedSQLite", "SealedVFS", "DataVault", "VaultCrypto", "FileLayer",
        "StrictJSON", "CSQLite", grdb, logging, metrics, system,
      ]),
    // Apart, so that who does not use ServiceLifecycle does not build it.
    module(
      "MessagingQueueLifecycle",
      [
        "MessagingQueue", "VaultedDatabase", "DataVault", serviceLifecycle, grdb, logging, metrics,
      ]),
    // A strict reader of JSON, for what comes from others.
    module("StrictJSON", []),
    // For clients, whose server has no key.
    module("MessageCipher", ["StrictJSON", "VaultCrypto"]),
    // What an application links: clients of the server's protocols.
    module(
      "MessagingClient",
      [
        "MessageCipher", "DataVault", "StrictJSON", "VaultCrypto", logging, nioSSL,
        network("DequeModule", "swift-collections"), network("NIOTLS", "swift-nio"),
      ] + nio),
    // Apart, because they need libraries that most applications do without.
    module("NegotiateAuthentication", ["MessagingClient", "FileLayer", "CGSSAPI"]),
    module("PusherEncryption", ["MessagingClient", "StrictJSON", "VaultCrypto", "CSodium"]),
    // Decides how nodes share a queue over a log: no file, no socket, no clock.
    module("Replication", ["StrictJSON", "VaultCrypto"]),
    // Brings the queue of one home through a log that several nodes share.
    module(
      "QueueReplication",
      [
        "Replication", "MessagingQueue", "VaultedDatabase", "DataVault", "VaultCrypto", "FileLayer",
        grdb, logging,
      ]),
    // The log in a stream of NATS JetStream.
    module(
      "JetStreamLog",
      ["Replication", "StrictJSON", "VaultCrypto", "FileLayer", "CNATS", logging]),
    // For the message server.
    module(
      "Realtime",
      [
        "MessagingQueue", network("DequeModule", "swift-collections"),
        network("HeapModule", "swift-collections"),
      ]),
    // Knows neither a socket nor a table: what a server decides, as values.
    module("AccessControl", ["StrictJSON", "VaultCrypto"]),
    // The tables of applications, grants and groups, and what they say now, in memory.
    module(
      "ApplicationStore",
      ["AccessControl", "MessagingQueue", "VaultedDatabase", "DataVault", "VaultCrypto", grdb]),
    module(
      "MessagingServer",
      [
        "ApplicationStore", "Realtime", "AccessControl", "StrictJSON", "MessagingQueueLifecycle",
        "MessagingQueue", "VaultedDatabase", "DataVault", "VaultCrypto", "FileLayer", "CZlib",
        logging, metrics, serviceLifecycle, unixSignals, system, nioSSL,
      ] + nio),
    module("SecretServiceStore", ["DataVault", "FileLayer", "CGIO", system]),
    module("DesktopKeyring", ["DataVault", "VaultCrypto", "FileLayer", "CLibsecret", system]),
    module("DataVaultTesting", ["DataVault", "VaultCrypto", "FileLayer", system]),
    // What the programs share: arguments, secrets, output, exit codes.
    module(
      "CommandInterface",
      [
        "QueueReplication", "MessagingQueue", "VaultedDatabase", "SealedVFS", "DataVault",
        "SecretServiceStore", "DesktopKeyring", "VaultCrypto", "FileLayer", argumentParser, logging,
        system,
      ]),
    .executableTarget(
      name: "DataVaultCommand",
      dependencies: [
        "CommandInterface", "MessagingQueue", "VaultedDatabase", "SealedSQLite", "SealedVFS",
        "DataVault", "DesktopKeyring", "VaultCrypto", "FileLayer", "StrictJSON", argumentParser,
        system,
      ],
      swiftSettings: settings),

    .executableTarget(
      name: "DataVaultServerCommand",
      dependencies: [
        "CommandInterface", "MessagingServer", "JetStreamLog", "QueueReplication", "Replication",
        "ApplicationStore", "AccessControl", "StrictJSON", "MessagingQueueLifecycle",
        "MessagingQueue", "VaultedDatabase", "DataVault", "VaultCrypto", "FileLayer",
        argumentParser, logging, serviceLifecycle, unixSignals, system,
      ],
      swiftSettings: settings),

    // Temporary folders, finished programs, seeded choices, and secrets from text.
    support("TestSupport", ["DataVault", "VaultCrypto", logging, system]),
    // Reads a process's memory.
    support("ProcessMemory"),
    // Looks at secrets as the system gets their memory back, in a release build too: scripts/nightly.
    .target(name: "CReleasedMemory", path: "Tests/Support/CReleasedMemory"),
    .executableTarget(
      name: "MemoryWipeTest",
      dependencies: ["CReleasedMemory", "DataVaultTesting", "DataVault", "VaultCrypto"],
      path: "Tests/Support/MemoryWipeTest", swiftSettings: Array(settings.dropFirst())),
    // Records and breaks what the stores do to the disk, and a clock that a test moves.
    support("FileRecording", ["FileLayer", "TestSupport", system]),
    // Records and breaks what SQLite does to the disk.
    support("FaultVFS", ["FileLayer", "FileRecording", "TestSupport", "CSQLite", system]),
    // Brokers of NATS in processes of their own.
    support("BrokerCluster", ["TestSupport", system]),
    // Measures two nodes over brokers: scripts/bench-cluster.
    .executableTarget(
      name: "ClusterLoad",
      dependencies: [
        "JetStreamLog", "QueueReplication", "Replication", "MessagingQueue", "VaultedDatabase",
        "DataVault", "BrokerCluster", "TestSupport", "VaultCrypto", "FileLayer", "CNATS", logging,
        system,
      ],
      path: "Tests/Support/ClusterLoad", swiftSettings: Array(settings.dropFirst())),
    // Nodes of one process over a log in memory.
    support(
      "ReplicationFixture",
      [
        "QueueReplication", "Replication", "MessagingQueue", "VaultCrypto", "FileLayer",
        "TestSupport", grdb,
      ]),
    // The operations of an engine, for tests that wait for each of them.
    support("QueueFixture", ["MessagingQueue", "FileLayer", "TestSupport", grdb]),

    // The program of SealedSQLite's documentation, as it stands there.
    .executableTarget(
      name: "FirstProgram", dependencies: ["SealedSQLite", grdb], path: "Tests/Support/FirstProgram"
    ),
    // The programs of its articles on moving.
    .target(
      name: "MovingExamples", dependencies: ["SealedSQLite", "SealedVFS", "VaultCrypto"],
      path: "Tests/Support/MovingExamples"),

    // The program of MessagingQueue's tutorial, as it stands there.
    .executableTarget(
      name: "Shop",
      dependencies: ["MessagingQueue", "VaultedDatabase", "DataVault", "VaultCrypto"],
      path: "Tests/Support/Tutorial"),

    // The code of the articles of MessagingQueue and MessagingQueueLifecycle.
    .target(
      name: "ArticleExamples",
      dependencies: [
        "MessagingQueueLifecycle", "MessagingQueue", "VaultedDatabase", "DataVault", grdb, logging,
        serviceLifecycle,
      ],
      path: "Tests/Support/ArticleExamples"),
    // The code of the guide to encrypted messages.
    support("MessageCipherExamples", ["MessageCipher", "DataVault", "VaultCrypto"]),
    // The code of the pages on moving from other clients.
    support(
      "ClientExamples",
      ["MessagingClient", "MessageCipher", "DataVault", "VaultCrypto", logging]),
    // The program of the guide to the client.
    .executableTarget(
      name: "Chat",
      dependencies: ["MessagingClient", "MessageCipher", "DataVault", "VaultCrypto", system],
      path: "Tests/Support/ChatProgram", swiftSettings: Array(settings.dropFirst())),
    // A client in a process of its own, because KRB5_CONFIG belongs to one.
    .executableTarget(
      name: "NegotiateClient",
      dependencies: ["NegotiateAuthentication", "MessagingClient", "VaultCrypto", "TestSupport"],
      path: "Tests/Support/NegotiateClient", swiftSettings: Array(settings.dropFirst())),
    // Works on jobs until it is killed: CrashTests.
    .executableTarget(
      name: "JobProgram",
      dependencies: [
        "MessagingQueueLifecycle", "MessagingQueue", "VaultedDatabase", "DataVault", "VaultCrypto",
        grdb, logging, serviceLifecycle,
      ],
      path: "Tests/Support/JobProgram"),

    tests("FileLayerTests", ["FileRecording", "FileLayer", system]),
    tests("VaultCryptoTests", ["VaultCrypto"]),
    tests(
      "MessageCipherTests",
      ["MessageCipher", "MessageCipherExamples", "DataVault", "DataVaultTesting", "VaultCrypto"]),
    tests("AccessControlTests", ["AccessControl", "StrictJSON", "VaultCrypto"]),
    // A session bus and a GNOME Keyring of a test's own.
    support("PrivateKeyring", ["SecretServiceStore", "DataVault", "TestSupport", system]),
    tests(
      "SecretServiceStoreTests",
      [
        "FileRecording", "SecretServiceStore", "PrivateKeyring", "DataVault", "DataVaultTesting",
        "VaultCrypto",
        "FileLayer", system,
      ]),
    tests("DesktopKeyringTests", ["DesktopKeyring", "DataVault", "VaultCrypto"]),
    tests(
      "DataVaultTests",
      [
        "FileRecording", "DataVault", "DataVaultTesting", "VaultCrypto", "FileLayer",
        "ProcessMemory", system,
      ]),
    tests(
      "SealedVFSTests",
      [
        "FileRecording", "SealedVFS", "VaultCrypto", "FileLayer", "FaultVFS",
        "CSQLite", system,
      ]),
    tests(
      "SealedSQLiteTests",
      [
        "FileRecording", "SealedSQLite", "SealedSalvage", "SealedVFS", "VaultCrypto", "FileLayer",
        "FaultVFS", "ProcessMemory", "MovingExamples", grdb, system,
      ]),
    tests(
      "VaultedDatabaseTests",
      [
        "FileRecording", "VaultedDatabase", "DataVault", "DataVaultTesting", "SealedSQLite",
        "SealedVFS",
        "VaultCrypto", "FileLayer", "FaultVFS", grdb, system,
      ]),
    tests(
      "MessagingQueueTests",
      [
        "FileRecording", "MessagingQueue", "VaultedDatabase", "SealedSQLite", "SealedVFS",
        "DataVault", "DataVaultTesting",
        "VaultCrypto", "FileLayer", "StrictJSON", "FaultVFS", "QueueFixture", "Shop", grdb, logging,
        metrics,
        system,
        .product(name: "MetricsTestKit", package: "swift-metrics"),
      ]),
    tests(
      "MessagingQueueLifecycleTests",
      [
        "MessagingQueueLifecycle", "MessagingQueue", "VaultedDatabase", "DataVault",
        "DataVaultTesting", "VaultCrypto", "FileLayer", "ArticleExamples", grdb, logging, system,
        serviceLifecycle, .product(name: "MetricsTestKit", package: "swift-metrics"),
        .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
      ]),
    tests("StrictJSONTests", ["StrictJSON"]),
    tests("ReplicationTests", ["Replication", "VaultCrypto"]),
    tests(
      "JetStreamLogTests",
      [
        "JetStreamLog", "QueueReplication", "Replication", "MessagingQueue", "BrokerCluster",
        "ReplicationFixture", "VaultCrypto", "FileLayer", grdb, logging, system,
      ]),
    tests(
      "QueueReplicationTests",
      [
        "QueueReplication", "Replication", "MessagingQueue", "VaultedDatabase", "DataVault",
        "DataVaultTesting", "VaultCrypto", "FileLayer", "FileRecording", "ReplicationFixture", grdb,
        logging, system,
      ]),
    tests(
      "ApplicationStoreTests",
      [
        "ApplicationStore", "AccessControl", "MessagingQueue", "VaultedDatabase", "DataVault",
        "DataVaultTesting", "VaultCrypto", "FileLayer", "ReplicationFixture", "QueueReplication",
        grdb, system,
      ]),
    tests(
      "MessagingServerTests",
      [
        "MessagingServer", "ApplicationStore", "Realtime", "AccessControl", "StrictJSON",
        "MessagingQueueLifecycle", "MessagingQueue", "VaultedDatabase", "DataVault",
        "DataVaultTesting", "VaultCrypto", "FileLayer", grdb, logging, serviceLifecycle, system,
        nioSSL, network("NIOEmbedded", "swift-nio"), "ProcessMemory", "MessageCipher",
        "MessagingClient", "PusherEncryption", "Chat", "ReplicationFixture", "QueueReplication",
        "Replication",
      ] + nio),
    tests(
      "MessagingClientTests",
      [
        "MessagingClient", "ClientExamples", "VaultCrypto", "MessageCipher", logging, nioSSL,
        network("NIOEmbedded", "swift-nio"),
      ] + nio),
    tests(
      "NegotiateAuthenticationTests",
      ["NegotiateAuthentication", "NegotiateClient", "MessagingClient", "FileLayer", system]),
    tests("PusherEncryptionTests", ["PusherEncryption", "MessagingClient", "VaultCrypto"]),
    tests(
      "RealtimeTests",
      [
        "Realtime", "MessagingQueue", "ReplicationFixture", "QueueReplication", "Replication",
        "FileLayer", grdb,
      ]),
    tests(
      "ExtensionTests",
      ["SealedSQLite", "SealedVFS", "VaultCrypto", "CSQLite", grdb, system]),
    tests(
      "CommandTests",
      [
        "SecretServiceStore", "PrivateKeyring", "BrokerCluster", "DataVault", "VaultCrypto",
        "FileLayer", system,
      ]),
    tests("ExampleTests", []),
    tests(
      "CrashTests",
      [
        "FileRecording", "QueueReplication", "Replication", "ReplicationFixture", "MessagingQueue",
        "VaultedDatabase", "DataVault", "DataVaultTesting", "SealedSQLite", "SealedVFS",
        "VaultCrypto", "FileLayer", "FaultVFS", "QueueFixture", "CSQLite", "JobProgram", grdb,
        system,
      ]),
  ]
)

// For work on a part: DATAVAULT_TESTS=RealtimeTests,CommandTests builds no other tests.
if let chosen = Context.environment["DATAVAULT_TESTS"]?.split(separator: ",").map(String.init) {
  package.targets.removeAll { $0.type == .test && !chosen.contains($0.name) }
}

// For `make fuzz` alone: dependents see neither the message server nor replication as a library.
if Context.environment["DATAVAULT_FUZZ"] != nil {
  package.products.append(.library(name: "MessagingServer", targets: ["MessagingServer"]))
  package.products.append(.library(name: "Replication", targets: ["Replication"]))
  package.products.append(.library(name: "QueueReplication", targets: ["QueueReplication"]))
}

// For `make docs` alone: dependents need no documentation tool.
if Context.environment["DATAVAULT_DOCS"] != nil {
  package.dependencies.append(
    .package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"))
}
