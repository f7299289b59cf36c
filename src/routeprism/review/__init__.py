"""What the numbers of a finished run mean: gates, comparisons, planning and tracing."""
