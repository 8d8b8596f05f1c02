"""What the parts of a trained MoP do, in figures and numbers."""
