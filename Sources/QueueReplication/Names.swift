internal import Replication

// GRDB and the engine have types of the same names.
typealias Record = Replication.Record
typealias RecordError = Replication.RecordError
typealias Settlement = Replication.Settlement
