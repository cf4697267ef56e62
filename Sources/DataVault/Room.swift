// DataVault: replaced by its first real content.
