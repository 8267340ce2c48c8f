"""All that touches private parts of Flower, and nothing else: each file checks at start that they are as expected."""
