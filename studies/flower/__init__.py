"""Studies over real processes: Flower's simulation engine and Flower's deployment engine, started and ended here."""
