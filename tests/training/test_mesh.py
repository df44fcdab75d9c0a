"""Several devices of one process, which a CPU emulates: the fit of one device."""

import os
import subprocess
import sys

import numpy as np
import pytest

from nkcme.training.mesh import shares_of
from support.large_folder import write_folder


@pytest.mark.parametrize(
    ("replicas", "lanes", "devices", "expected"),
    [
        (2, 8, 1, (1, 1)),
        (2, 8, 2, (2, 1)),
        (2, 8, 3, (2, 1)),  # a third of the lanes is none
        (2, 8, 4, (2, 2)),
        (2, 8, 6, (2, 2)),
        (2, 8, 16, (2, 8)),
        (2, 8, 64, (2, 8)),
        (3, 8, 4, (1, 4)),
        (1, 6, 4, (1, 3)),
    ],
)
def test_devices_are_those_that_replicas_and_lanes_divide_over(replicas, lanes, devices, expected):
    assert shares_of(replicas, lanes, devices) == expected


def fits(folder, n_devices, checkpoint):
    """What a new process with so many devices learns; it has the cores of this one."""
    out = checkpoint.with_name(f"of-{n_devices}.npz")
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={n_devices}"
    subprocess.run(
        [sys.executable, "-m", "support.fit_on_devices", folder, checkpoint, out],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        check=True,
    )
    return np.load(out)


def test_four_devices_fit_what_one_fits_also_where_one_goes_on(tmp_path):
    (tmp_path / "table").mkdir()
    folder = write_folder(tmp_path / "table")
    four, one = (fits(folder, n, tmp_path / "state") for n in (4, 1))
    assert (four["devices"], one["devices"]) == (4, 1)
    assert four["mesh"].tolist() == [2, 2]  # replicas and rows
    # Not the same bits: as many threads of linear algebra as devices may be at work.
    for name, of_one in (("disk", "disk"), ("disk", "resumed"), ("memory", "memory")):
        loss, mean = one[f"{of_one}-loss"], one[f"{of_one}-mean"]
        np.testing.assert_allclose(four[f"{name}-loss"], loss, rtol=1e-6)
        np.testing.assert_allclose(four[f"{name}-mean"], mean, rtol=1e-4, atol=1e-4)
    # Without lanes devices add in another order, of which training magnifies the last digits.
    np.testing.assert_allclose(four["gpu-loss"], one["disk-loss"], rtol=1e-3)
    np.testing.assert_allclose(four["gpu-mean"], one["disk-mean"], atol=0.01)
