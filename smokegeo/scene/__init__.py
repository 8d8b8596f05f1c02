"""Scenes: the rasters to search, opened with care and read window by window."""
