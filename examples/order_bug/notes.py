"""A memory of what a person said, one note for each topic. It has a bug."""


class Notes:
    """Keeps the newest note of every topic; a note reads `topic: what is new`."""

    def __init__(self):
        self.newest = {}

    def add(self, record):
        """Take a note in, as it arrives."""
        topic = record.text.partition(":")[0]
        self.newest[topic] = record  # the bug: what arrives last is not what is newest

    def retained(self):
        """Give the ids of the notes that are kept."""
        return [record.id for record in self.newest.values()]

    def expose(self, query):
        """Show all notes that are kept, by topic."""
        return [self.newest[topic] for topic in sorted(self.newest)]
