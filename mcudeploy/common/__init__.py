"""What every package may use: errors, files, progress, effort, text."""
