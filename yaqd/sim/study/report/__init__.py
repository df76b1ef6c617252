"""What the study shows: intervals, effects, tables, plots and the page. Nothing here changes a result."""
