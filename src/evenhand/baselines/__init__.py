"""The methods that the paper compares with: Rawlsian, LFR, ALFR (LR is scikit-learn's own)."""
