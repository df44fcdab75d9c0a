"""Kernel ridge regression in closed form, shared by `KernelCME` and `DeepFeatureCME`."""
