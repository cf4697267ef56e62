// swift-tools-version: 6.2

import PackageDescription

// A package of its own, so that packages that depend on DataVault do not build it.
let package = Package(
  name: "Suites",
  products: [
    .library(name: "sealedsuite", type: .dynamic, targets: ["SealedSuite"])
  ],
  dependencies: [
    .package(name: "DataVault", path: ".."),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
  ],
  targets: [
    // VFS structures and a constructor, for which Swift has no words.
    .target(name: "CSealedSuite"),
    .target(
      name: "SealedSuite",
      dependencies: [
        "CSealedSuite",
        .product(name: "SealedVFS", package: "DataVault"),
        .product(name: "SystemPackage", package: "swift-system"),
        .product(name: "VaultCrypto", package: "DataVault"),
      ]),
  ]
)
