"""The nine algorithms of the SLAQ paper as training jobs, on kernels of numpy, scipy and scikit-learn (the extra `ml`).

Each file is a script for `yaq ml local` and `yaq ml submit`.
"""
