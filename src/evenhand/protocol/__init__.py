"""The paper's protocol: splits, grids, selection, sweeps."""
