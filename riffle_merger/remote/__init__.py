"""Map outputs on a shared file system: files that any merger can merge, wherever the maps ran (Riffle, 4.3.4)."""
