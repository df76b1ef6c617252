"""Merging of a job's map outputs: settings, who merges, and what the job manager does about it."""
