"""How text is cut, counted and ranked."""
