"""The measurement stage: a supervisor in the parent, a worker in a process of its own."""
