internal import ArgumentParser

/// `--format`, of the file that is not the sealed one.
enum DatabaseFormat: String, CaseIterable, ExpressibleByArgument {
  case sealed
  case sqlcipher4
  case plain
}
