// swift-tools-version: 6.2

import PackageDescription

// A separate package, so that dependents of DataVault do not build it.
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
    // C, because Swift cannot interpose C functions.
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
