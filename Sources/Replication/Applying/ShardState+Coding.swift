/// How a database stores what a member knows of the log; it never leaves the database.
extension ShardState.Values {
  package var bytes: [UInt8] {
    var writer = RecordWriter()
    writer.append(position)
    writer.append(digest.bytes)
    writer.append(UInt64(bitPattern: highWater))
    writer.appendOptional(ownerTime) { $0.append(UInt64(bitPattern: $1)) }
    writer.appendOptional(epoch) { writer, epoch in
      writer.append(epoch.epoch)
      writer.append(epoch.owner)
    }
    writer.append(trimmedThrough)
    writer.append(key)
    writer.append(oldestKey)
    writer.append(UInt32(repaired.count))
    for range in repaired {
      writer.append(UInt64(bitPattern: range.from))
      writer.append(UInt64(bitPattern: range.to))
    }
    writer.append(requestedKey)
    return writer.bytes
  }

  package init(decoding bytes: [UInt8]) throws(RecordError) {
    var reader = RecordReader(bytes)
    try self.init(&reader)
    guard reader.isAtEnd else { throw RecordError.trailing }
  }

  fileprivate init(_ reader: inout RecordReader) throws(RecordError) {
    position = try reader.number()
    digest = RecordDigest(bytes: try reader.raw(RecordDigest.zero.bytes.count))
    highWater = Int64(bitPattern: try reader.number())
    ownerTime = try reader.optional { reader throws(RecordError) in
      Int64(bitPattern: try reader.number())
    }
    epoch = try reader.optional { reader throws(RecordError) in
      ShardState.EpochRecord(epoch: try reader.identifier(), owner: try reader.identifier())
    }
    trimmedThrough = try reader.number()
    key = try reader.number()
    oldestKey = try reader.number()
    let count: UInt32 = try reader.number()
    guard count <= ShardState.mostRepairedRanges else { throw RecordError.outOfRange }
    for _ in 0..<count {
      repaired.append(
        ShardState.TimetokenRange(
          from: Int64(bitPattern: try reader.number()), to: Int64(bitPattern: try reader.number())))
    }
    requestedKey = try reader.number()
  }
}

extension ShardState.Change {
  package var bytes: [UInt8] {
    var writer = RecordWriter()
    writer.appendBlock(values.bytes)
    writer.appendOptional(author) { writer, author in
      writer.append(author.id)
      writer.appendOptional(author.state) { writer, state in
        writer.append(state.number)
        writer.append(UInt32(state.partCount))
      }
    }
    writer.appendOptional(member) { writer, member in
      writer.append(member.id)
      writer.appendOptional(member.state) { writer, state in
        writer.append(state.since)
        writer.append(state.safe)
        writer.append(state.newestKey)
        writer.append(state.oldestKey)
      }
    }
    return writer.bytes
  }

  package init(decoding bytes: [UInt8]) throws(RecordError) {
    var reader = RecordReader(bytes)
    self.init(values: try ShardState.Values(decoding: try reader.block()))
    author = try reader.optional { reader throws(RecordError) in
      let id: AuthorID = try reader.identifier()
      let state: ShardState.AuthorState? = try reader.optional { reader throws(RecordError) in
        ShardState.AuthorState(
          number: try reader.number(), partCount: Int(try reader.number(UInt32.self)))
      }
      return (id, state)
    }
    member = try reader.optional { reader throws(RecordError) in
      let id: MemberID = try reader.identifier()
      let state: ShardState.Member? = try reader.optional { reader throws(RecordError) in
        ShardState.Member(
          since: try reader.number(), safe: try reader.number(), newestKey: try reader.number(),
          oldestKey: try reader.number())
      }
      return (id, state)
    }
    guard reader.isAtEnd else { throw RecordError.trailing }
  }
}

extension RecordPlace {
  package var bytes: [UInt8] {
    var writer = RecordWriter()
    writer.append(sequence)
    writer.append(UInt64(bitPattern: storedAt))
    writer.append(name)
    writer.append(key)
    writer.append(digest.bytes)
    return writer.bytes
  }

  package init(decoding bytes: [UInt8]) throws(RecordError) {
    var reader = RecordReader(bytes)
    self.init(
      sequence: try reader.number(), storedAt: Int64(bitPattern: try reader.number()),
      name: try reader.recordNumber(), key: try reader.number(),
      digest: RecordDigest(bytes: try reader.raw(RecordDigest.zero.bytes.count)))
    guard reader.isAtEnd else { throw RecordError.trailing }
  }
}
