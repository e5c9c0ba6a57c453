"""Code for every package: errors, files, progress, effort, text."""
