"""What the product's pages share: markup that escapes, a page without network, one look, charts and tables."""
