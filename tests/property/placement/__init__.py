"""Laws of placement, on random trees."""
