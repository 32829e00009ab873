"""Rankers: estimators whose scores are compared within queries.

What a pair of rows costs belongs in ``objectives`` and ``terms``; only how scores depend on
variables, and the interface of a ranker, belong here.
"""
