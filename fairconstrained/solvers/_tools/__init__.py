"""What several solvers share: steps, step sizes, L-BFGS, restoration, sampling."""
