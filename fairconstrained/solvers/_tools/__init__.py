"""What several solvers share: steps, step sizes, L-BFGS, restoration, phase one, sampling."""
