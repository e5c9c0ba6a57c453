"""What passes between stages: graph, operator definitions, plan, intervals."""
