"""What sees only reports: de-biased estimators, the trusted curator, the round loop."""
