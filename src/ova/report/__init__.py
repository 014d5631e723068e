"""From the files of runs to figures, tables and one page that needs nothing but a browser."""
