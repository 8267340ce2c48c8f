"""For Flower apps of others: a mod that lets only randomised updates leave a node, and the strategy that reads them."""
