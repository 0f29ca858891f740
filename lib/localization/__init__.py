"""Where leakage sits: in which layers. `disparity` reads results with numpy alone; the others compute with torch."""
