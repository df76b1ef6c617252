"""Divide cores among training jobs by what they buy: how far each job's loss will fall.

After SLAQ (Zhang et al., "SLAQ: quality-driven scheduling for distributed machine learning", SoCC 2017). A policy is a
pure function of arrays with an entry for each job; the ResourceManager and the simulator call the same ones.
"""
