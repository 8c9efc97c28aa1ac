"""The simulated exchange: one seeded market, or a recording, served in the true HTTP shapes of three exchanges."""
