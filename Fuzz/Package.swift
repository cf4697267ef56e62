// swift-tools-version: 6.2

import PackageDescription

// A package of its own, because libFuzzer brings its own main function, which a normal build cannot
// link. `make fuzz` builds it with `--sanitize=fuzzer`, and with DATAVAULT_FUZZ in the environment,
// for the products MessagingServer, Replication and QueueReplication.
let package = Package(
  name: "Fuzz",
  dependencies: [
    .package(name: "DataVault", path: ".."),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
  ],
  targets: [
    .systemLibrary(
      name: "CFuzzedSQLite", path: "Sources/CSQLite", pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"])]),
    .executableTarget(
      name: "Fuzz",
      dependencies: [
        "CFuzzedSQLite",
        .product(name: "AccessControl", package: "DataVault"),
        .product(name: "DataVault", package: "DataVault"),
        .product(name: "MessageCipher", package: "DataVault"),
        .product(name: "MessagingClient", package: "DataVault"),
        .product(name: "MessagingQueue", package: "DataVault"),
        .product(name: "MessagingServer", package: "DataVault"),
        .product(name: "QueueReplication", package: "DataVault"),
        .product(name: "Replication", package: "DataVault"),
        .product(name: "SealedVFS", package: "DataVault"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "SystemPackage", package: "swift-system"),
        .product(name: "VaultCrypto", package: "DataVault"),
      ],
      swiftSettings: [.unsafeFlags(["-parse-as-library"])]),
  ]
)
