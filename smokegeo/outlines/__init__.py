"""Outlines of smoke, traced from a probability raster strip by strip."""
