"""A user's table in and out: files, columns, cells, splits, preprocessing, streaming."""
