"""Tools that several solvers share: L-BFGS, step sizes, averages, restoration, sampling."""
