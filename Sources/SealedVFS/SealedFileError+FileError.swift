internal import FileLayer
internal import SystemPackage

extension SealedFileError {
  /// What making or replacing a database's file failed with.
  init(_ error: FileError, _ path: FilePath) {
    let code: Code =
      switch error.errno {
      case _ where error.refusal != nil: .foreignFile
      case .noSpace, .diskQuotaExceeded: .diskFull
      case .permissionDenied, .notPermitted, .readOnlyFileSystem: .readOnly
      default: .ioFailed
      }
    self.init(code, path: path.string, detail: error.description)
  }

  /// Runs file operations around the database at a path, their errors in this module's terms.
  static func translating<R>(
    _ path: FilePath, _ body: () throws(FileError) -> R
  ) throws(SealedFileError) -> R {
    do throws(FileError) {
      return try body()
    } catch {
      throw SealedFileError(error, path)
    }
  }
}
