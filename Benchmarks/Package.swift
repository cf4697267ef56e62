// swift-tools-version: 6.2

import PackageDescription

// A package of its own, so that packages that depend on DataVault do not build it.
let package = Package(
  name: "Benchmarks",
  dependencies: [
    .package(name: "DataVault", path: ".."),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    // For mallinfo(3), which Swift's Glibc module lacks.
    .target(name: "CHeapUse"),
    .executableTarget(
      name: "Benchmarks",
      dependencies: [
        "CHeapUse",
        .product(name: "AccessControl", package: "DataVault"),
        .product(name: "DataVault", package: "DataVault"),
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "GRDBSQLite", package: "GRDB.swift"),
        .product(name: "MessagingQueue", package: "DataVault"),
        .product(name: "SealedSQLite", package: "DataVault"),
        .product(name: "SealedVFS", package: "DataVault"),
        .product(name: "SystemPackage", package: "swift-system"),
        .product(name: "VaultCrypto", package: "DataVault"),
        .product(name: "VaultedDatabase", package: "DataVault"),
      ]),
    // For epoll(7) and TLS, which Swift's Glibc module lacks.
    .systemLibrary(
      name: "CLoadSystem", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
    // The clients of the server's rows, in a process of their own.
    .executableTarget(name: "Load", dependencies: ["CLoadSystem"]),
    // `make soak`: the engine at full load for a given time.
    .executableTarget(
      name: "Soak",
      dependencies: [
        .product(name: "MessagingQueue", package: "DataVault"),
        .product(name: "SystemPackage", package: "swift-system"),
        .product(name: "VaultedDatabase", package: "DataVault"),
      ]),
  ]
)
