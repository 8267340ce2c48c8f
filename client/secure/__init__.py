"""The member's side of secure aggregation: what leaves a client is its vector under masks, and shares of their keys."""
