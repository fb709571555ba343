"""From a table to a model in use: train, measure, choose, save and decide."""
