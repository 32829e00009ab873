"""Networks of PyTorch under fairness constraints.

The model itself is in ``models``; here is what a fit of it needs. PyTorch is imported when used.
"""
