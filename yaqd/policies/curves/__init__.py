"""Predict learning curves from what was reported so far; all predictors take many jobs or trials at once, as arrays.

Falling losses of training jobs: the two families are SLAQ's (Zhang et al., SoCC 2017, section 3.3.2). Beside them stand
a damped trend, the last change repeated, and a mixture by how each did on the job's own history.

Rising metrics of trials (`reach.py`): the chance that a target is reached, from shapes of the eleven families of Domhan
et al. (IJCAI 2015), and by the walkers of POP.
"""
