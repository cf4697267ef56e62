// MessagingQueue: replaced by its first real content.
