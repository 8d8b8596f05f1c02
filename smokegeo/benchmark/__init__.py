"""The paper's comparison on one's own data: train, score, measure, and put it into tables."""
