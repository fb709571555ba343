"""The data sets of the paper, education data, and the user's own table."""
