"""What is NKCME's own; what it shares with its rivals is in the contracts."""

from __future__ import annotations

import numpy as np

from nkcme import NKCME, presets
from nkcme.estimators.nkcme.ensemble import MIN_BANDWIDTH


def test_the_papers_bandwidth_cannot_vanish_where_values_repeat_on_atoms():
    # y takes two values, both of them atoms: the narrower the kernel, the lower the loss, without
    # end. That is how the paper's recipe ends as NaN on Naval.
    x = np.linspace(-1, 1, 64)[:, None]
    y = np.sign(x[:, 0] + 1e-9)
    model = NKCME(**presets.PAPER_TOY | {"hidden": (16,), "learning_rate": 0.02, "epochs": 3000})
    model.set_params(random_state=0).fit(x, y)
    spacing = 2 / 99
    assert 1 < model.bandwidth_ / (MIN_BANDWIDTH * spacing) < 1.5
    assert np.isfinite(model.history_["loss"]).all()
    away = np.abs(x[:, 0]) > 0.1  # from the jump
    np.testing.assert_allclose(model.predict(x)[away], y[away], atol=0.2)
