"""The location model at new rows: its mean, its scale, and how the ensemble narrows it."""

from typing import NamedTuple

import numpy as np

from nkcme.estimators.nkcme.location_model import LocationModel
from nkcme.estimators.nkcme.stacking import reach_of


class Constant(NamedTuple):
    """A base with given predictions, whatever x is."""

    predicted: np.ndarray

    def members(self, _):
        return self.predicted


def test_where_members_differ_the_mean_of_all_of_them_errs_less():
    """Of a squared error s^2 by one member per repeat, v / 2 is due to the members; of that, v / 10
    remains in the mean of all ten. It cannot be more than all of s^2."""
    v = np.array([0.0, 0.1, 1.0, 100.0])
    apart = np.tile([-1.0, 1.0], 5)[:, None, None] * np.sqrt(0.9)  # of variance one
    base = Constant(7.0 + apart * np.sqrt(v)[:, None])
    model = LocationModel({"base00": base}, np.ones((1, 1)), np.array([2.0]), 2, None)
    location = model.at(np.zeros((4, 3)))
    np.testing.assert_allclose(location.mean, 7.0)
    variance = np.full((4, 1), 0.5)
    squared = np.square(location.narrowed(variance)) * variance
    np.testing.assert_allclose(squared[:, 0], [2.0, 2.0 - 0.04, 2.0 - 0.4, 2.0 * 2 / 10])


def test_the_network_of_weights_gets_the_mean_and_how_bases_differ_from_it():
    bases = {"a": Constant(np.full((2, 3, 1), 1.0)), "b": Constant(np.full((2, 3, 1), 3.0))}
    model = LocationModel(bases, np.array([[0.5], [0.5]]), np.array([0.5]), 2, None)
    x = np.arange(6.0).reshape(3, 2)
    inputs = model.at(x).inputs
    np.testing.assert_allclose(inputs, np.c_[x, np.tile([2.0, -2.0, 2.0], (3, 1))])
    assert inputs.shape[1] == model.n_inputs(2)


def test_predictions_stay_within_the_range_of_y_and_as_much_again():
    reach = reach_of(np.array([[-1.0], [0.5], [3.0]]))
    np.testing.assert_array_equal(reach, [[-5.0], [7.0]])
    wild = Constant(np.array([[[-100.0], [0.0], [103.0]]]))
    model = LocationModel({"base00": wild}, np.ones((1, 1)), np.ones(1), 1, None, reach)
    np.testing.assert_array_equal(model.at(np.zeros((3, 1))).mean, [[-5.0], [0.0], [7.0]])


def test_every_base_and_member_counts_in_the_spread():
    """Bases of weight 1 and 0, members at 0 and 2, and at 3 and 5: (0 + 9) / 2 between the bases
    and the mean 1, and a variance of 2 within each."""
    members = [np.array(values).reshape(2, 1, 1) for values in ([0.0, 2.0], [3.0, 5.0])]
    bases = dict(zip("ab", map(Constant, members), strict=True))
    model = LocationModel(bases, np.array([[1.0], [0.0]]), np.ones(1), 2, None)
    np.testing.assert_allclose(model.at(np.zeros((1, 1))).spread, [[4.5 + 2.0]])


def test_a_location_model_describes_itself_in_one_line():
    bases = {"base00": Constant(np.zeros((1, 1, 1))), "late": Constant(np.zeros((1, 1, 1)))}
    model = LocationModel(bases, np.array([[0.25], [0.75]]), np.ones(1), 1, None)
    assert repr(model) == "LocationModel(0.25 regressor + 0.75 late)"
