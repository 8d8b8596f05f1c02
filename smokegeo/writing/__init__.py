"""Results: polygons with attributes, their files and styles, and the map for the browser."""
