"""Whole experiments: collect, train and evaluate in one go."""
