// SealedVFS: replaced by its first real content.
