extension TemporaryDatabase {
  /// The numbers, from 1, of the log's frames that hold a page.
  func frames(of page: UInt8) throws -> [Int] {
    let log = try bytes(log)
    return (1...(log.count - 32) / 4120).filter { frame in
      let start = 32 + (frame - 1) * 4120
      return Array(log[start..<start + 4]) == [0, 0, 0, page]
    }
  }

  /// Changes bytes 0..23 of the log's header and updates its checksum, which has no key.
  func changeLogHeader(_ body: (inout [UInt8]) -> Void) throws {
    try change(log) { log in
      var header = Array(log[..<24])
      body(&header)
      // The magic's last bit gives the byte order of the words.
      let words = stride(from: 0, to: 24, by: 4).flatMap { start in
        header[3] & 1 == 1 ? header[start..<start + 4].reversed() : Array(header[start..<start + 4])
      }
      log.replaceSubrange(..<32, with: header + LogChecksum.littleEndian(words[...]))
    }
  }
}
