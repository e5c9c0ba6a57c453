"""The data passed between stages: graph, operator definitions, plan, intervals."""
