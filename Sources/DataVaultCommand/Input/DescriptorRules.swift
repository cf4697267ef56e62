internal import ArgumentParser

/// What holds for descriptors that carry secrets.
enum DescriptorRules {
  /// Each is read to its end: a second secret from the same one would be empty.
  static func check(_ descriptors: [Int32]) throws {
    guard descriptors.allSatisfy({ $0 >= 0 }) else {
      throw ValidationError("a file descriptor is not negative")
    }
    guard Set(descriptors).count == descriptors.count else {
      throw ValidationError("each secret needs a file descriptor of its own")
    }
  }

  /// Standard input cannot carry both.
  static func checkStandardInputIsFree(_ descriptors: [Int32]) throws {
    guard !descriptors.contains(0) else {
      throw ValidationError("standard input carries the data here, not what opens the vault")
    }
  }
}
