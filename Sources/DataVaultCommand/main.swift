print("datavault: replaced by its first real content")
