"""Exchange adapters: each turns one exchange's REST answers into exact values."""
