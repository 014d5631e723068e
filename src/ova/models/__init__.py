"""Backbones: networks that give features; the formulation brings the head."""
