"""`python -m mcudeploy`: the command, where its script is not on the path."""

from mcudeploy.entry import main

main()
