"""Predict how a training job's loss goes on, from what it has reported so far.

The two families are SLAQ's (Zhang et al., SoCC 2017, section 3.3.2). Beside them stand a damped trend, the last change
repeated, and a mixture by how each did on the job's own history. All of them take many jobs at once as arrays.
"""
