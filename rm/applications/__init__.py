"""Applications, their attempts and containers: what they are, their lives, and what ends them."""
