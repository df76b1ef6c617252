"""Clotho: jobs that are graphs of stages, under a policy that learnt which stage goes first."""
