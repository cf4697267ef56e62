internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import Glibc
internal import SystemPackage
internal import VaultCrypto

/// A command from standard input to standard output, under a key of a vault.
private protocol StreamCommand: AsyncParsableCommand, VaultAccess {
  var vault: VaultArgument { get }
  var context: String { get }
}

extension StreamCommand {
  func validate() throws {
    try SecretRules.checkStandardInputIsFree(credentials.sources)
  }
}

extension ArgumentHelp {
  fileprivate static let context = ArgumentHelp(
    "A text that 'decrypt' must get too, such as where the data belongs. It is not stored.",
    valueName: "text")
}

/// The command `datavault encrypt VAULT`.
struct EncryptCommand: StreamCommand {
  static let configuration = CommandConfiguration(
    commandName: "encrypt", abstract: "Encrypt standard input under a key of the vault.",
    discussion: """
      Example:
        tar c documents | datavault encrypt archive > documents.sealed
        datavault decrypt archive < documents.sealed | tar x

      The vault does not store the data, and its size is not limited. Any password of the vault, \
      now or later, opens it.
      """)

  @OptionGroup var vault: VaultArgument
  @Option(help: .context) var context = ""
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let vault = try await open(self.vault.id())
    var encryptor = try await vault.encryptor(context: Array(context.utf8))
    let output = OutputDescriptor.standardOutput
    try output.writeAll(encryptor.header)
    var input = StandardInput("encrypting")
    while let count = try input.next() {
      try output.writeAll(
        input.piece.withBytes { (bytes) throws(VaultError) in
          try encryptor.update(bytes.extracting(first: count))
        })
    }
    try output.writeAll(encryptor.finish())
  }
}

/// The command `datavault decrypt VAULT`.
struct DecryptCommand: StreamCommand {
  static let configuration = CommandConfiguration(
    commandName: "decrypt", abstract: "Decrypt what 'encrypt' has made.",
    discussion: """
      What the command prints is authentic, but complete only if it ends with 0. It fails with 65 \
      if the data is changed or its end is missing, and with 66 if another vault has encrypted it.
      """)

  @OptionGroup var vault: VaultArgument
  @Option(help: .context) var context = ""
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let vault = try await open(self.vault.id())
    var input = StandardInput("decrypting")
    let header = try input.first(DataDecryptor.headerByteCount)
    var decryptor = try await vault.decryptor(
      header: header, context: Array(context.utf8))
    let output = OutputDescriptor.standardOutput
    while let count = try input.next() {
      let plaintext = try input.piece.withBytes { (bytes) throws(VaultError) in
        try decryptor.update(bytes.extracting(first: count))
      }
      try output.writeAll(plaintext)
    }
    let rest = try decryptor.finish()
    try output.writeAll(rest)
  }
}

/// Standard input, read piece by piece into locked memory.
private struct StandardInput: ~Copyable {
  private(set) var piece = SecretBytes(zeroCount: 1 << 20)
  private let line: ProgressLine
  private var readCount = 0
  /// How many bytes there are, if standard input is a file.
  private let byteCount: Int?

  /// - Parameter work: the operation, whose progress is shown unless its result goes to the terminal.
  init(_ work: String) {
    line = ProgressLine(work, unit: .bytes)
    var status = stat()
    let isFile = unsafe fstat(STDIN_FILENO, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    byteCount = isFile ? max(status.st_size - max(lseek(STDIN_FILENO, 0, SEEK_CUR), 0), 0) : nil
  }

  deinit { line.clear() }

  /// Reads the next bytes to the beginning of ``piece``.
  ///
  /// - Returns: their number; nil at the end.
  mutating func next(upTo limit: Int = 1 << 20) throws(CommandFailure) -> Int? {
    while true {
      let count = unsafe piece.withUnsafeMutableBytes {
        unsafe read(STDIN_FILENO, $0.baseAddress, min(limit, $0.count))
      }
      if count >= 0 {
        readCount += count
        if !OutputDescriptor.standardOutput.isTerminal {
          line.show(min(readCount, byteCount ?? .max), of: byteCount)
        }
        return count > 0 ? count : nil
      }
      guard errno == EINTR else {
        throw CommandFailure(
          .inputOutput, "cannot read standard input: \(Errno(rawValue: errno))")
      }
    }
  }

  /// The first bytes, which are no secret; fewer if there are no more.
  mutating func first(_ byteCount: Int) throws(CommandFailure) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < byteCount, let count = try next(upTo: byteCount - bytes.count) {
      bytes += unsafe piece.withUnsafeBytes { unsafe Array($0.prefix(count)) }
    }
    return bytes
  }
}
