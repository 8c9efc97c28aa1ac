"""Fixed records and Decimal64."""
