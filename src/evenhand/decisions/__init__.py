"""Decisions about one person at a time: decide, log, wait for the outcome, learn, judge, promote, replay."""
