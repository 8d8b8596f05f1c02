"""MoP, part by part."""
