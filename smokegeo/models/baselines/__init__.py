"""The methods the paper compares MoP with, one file each, all trained from scratch."""
