"""What proposes the configurations of an exploration."""
