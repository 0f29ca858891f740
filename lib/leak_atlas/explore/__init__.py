"""Live looks at stored results: ipywidgets apps, each with a static figure that shows the same
without them.
"""
