"""From a plan to a run: proposals, permission, what people decided, and the run itself."""
