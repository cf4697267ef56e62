// replaced by its first real content
