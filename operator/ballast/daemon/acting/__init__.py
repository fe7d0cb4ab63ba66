"""From a plan to a run: policy, permission, requests of people, and the run itself."""
