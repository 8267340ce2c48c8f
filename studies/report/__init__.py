"""From a results folder to tables in the terminal, plots and CSV files."""
