"""Steps of one plan on several cores at a time: who runs what, when, and who waits for whom."""
