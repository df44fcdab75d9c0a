"""Speed of this library's training loops, measured against the same training written plainly.

Ratios are what to compare; seconds depend on the machine.
"""
