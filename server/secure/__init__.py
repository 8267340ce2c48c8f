"""The server's side of secure aggregation: it learns the sums that its members open, and nothing else of them."""
