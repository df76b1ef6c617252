"""Kinds of jobs: `kind` says what one is, `registry` which there are. `tez_adapter.tasks.runners` runs their tasks."""
