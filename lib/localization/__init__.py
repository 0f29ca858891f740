"""Where leakage sits: in which layers. `layers` computes with torch, `disparity` reads the results with numpy alone."""
