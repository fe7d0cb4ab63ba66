"""What the tables are made of: pure functions from DataFrame to DataFrame, a module for each table."""
