"""Predictions of many rows: one callable for frames, and folders of Parquet files on many workers.

`predictor` maps frames to frames. `folder` divides a folder into units of rows, each of which
becomes one file; `processes` and `nkcme.ray_tasks` place them.
"""
