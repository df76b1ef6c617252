"""The same rules and policies compiled with numba (extra `ml`): what training runs in."""
