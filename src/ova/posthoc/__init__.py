"""What is fitted after training on held-out predictions: calibration, and a threshold with a promise."""
