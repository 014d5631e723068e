"""Measurements and curves become tables, figures and one page."""
