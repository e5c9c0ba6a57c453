"""Steps of one plan on several cores at once: who runs what, when, and who waits for whom."""
