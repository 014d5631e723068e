"""Corrupted copies of data sets on disk, in the layouts of CIFAR-10-C and ImageNet-C."""
