"""Read and write a user's table: files, columns, roles, splits, preprocessing, streaming."""

from evenhand.tables.dataset import Dataset
from evenhand.tables.files import Table, read_table
from evenhand.tables.load import load_table
from evenhand.tables.splits import Split, split

__all__ = ["Dataset", "Split", "Table", "load_table", "read_table", "split"]
