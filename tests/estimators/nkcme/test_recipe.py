"""The recipe: documented, frozen, kept in model files, and rules that follow the table's size."""

import dataclasses
import json

import numpy as np
import pytest

from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.recipe import (
    DEFAULT,
    BoostingRecipe,
    ComponentRecipe,
    EmbeddingRecipe,
    ForestRecipe,
    LocationRecipe,
    NetworkRecipe,
    Recipe,
    StepRule,
    StoppingRecipe,
)


@pytest.mark.parametrize(
    "kind",
    [
        Recipe,
        LocationRecipe,
        EmbeddingRecipe,
        ComponentRecipe,
        NetworkRecipe,
        StoppingRecipe,
        BoostingRecipe,
        ForestRecipe,
    ],
)
def test_every_constant_has_a_reason_and_says_what_it_was_tuned_on(kind):
    for field in dataclasses.fields(kind):
        assert field.metadata["reason"], field.name
        assert field.metadata["tuned_on"], field.name


def test_a_recipe_cannot_be_changed_in_place():
    with pytest.raises(dataclasses.FrozenInstanceError):
        DEFAULT.embedding.n_atoms = 7


def test_the_text_of_a_recipe_shows_what_was_changed():
    assert repr(Recipe()) == "Recipe()"
    changed = Recipe(n_folds=3, embedding=EmbeddingRecipe(n_atoms=7))
    assert repr(changed) == "Recipe(n_folds=3, embedding=EmbeddingRecipe(n_atoms=7))"


def test_json_keeps_a_recipe():
    recipe = dataclasses.replace(DEFAULT, n_folds=7, embedding=EmbeddingRecipe(hidden=(3, 4)))
    assert Recipe.from_config(json.loads(json.dumps(recipe.to_config()))) == recipe


def test_values_that_a_file_lacks_have_their_default():
    assert Recipe.from_config({"n_folds": 3, "embedding": {}}) == Recipe(n_folds=3)


@pytest.mark.parametrize(
    "config",
    [
        3,
        {"folds": 5},
        {"n_folds": 2.5},
        {"n_folds": True},
        {"n_folds": "5"},
        {"location": {"networks": []}},
        {"location": {"networks": [{"hidden": 8}]}},
        {"embedding": {"steps": {"steps": 1}}},
        {"embedding": {"activation": 1}},
    ],
)
def test_damaged_recipes_are_refused(config):
    with pytest.raises(ModelFileError):
        Recipe.from_config(config)


@pytest.mark.parametrize("n_rows", [20, 300, 1000, 10_000, 500_000])
def test_training_grows_with_the_table(n_rows):
    network, larger = (DEFAULT.location.network(n) for n in (n_rows, 2 * n_rows))
    assert network.stopping.marks[-1] == network.stopping.most <= larger.stopping.most
    quarters = 4 * network.batch(n_rows) / n_rows
    assert network.batch(n_rows) == network.batch_size or 0.7 < quarters < 1.42
    leaves = [DEFAULT.location.boosting.n_leaves(n) for n in (n_rows, 2 * n_rows)]
    assert 8 <= leaves[0] <= leaves[1] <= 127
    embedding = DEFAULT.embedding
    assert embedding.steps(n_rows) <= embedding.steps(2 * n_rows)
    assert embedding.weight_decay(n_rows, 5, 1) >= embedding.weight_decay(2 * n_rows, 5, 1)
    assert embedding.bandwidth_floor(n_rows) >= embedding.bandwidth_floor(2 * n_rows) >= 1.0


def test_networks_are_scored_whenever_their_steps_have_doubled():
    assert StoppingRecipe(first=50, most=400).marks == (50, 100, 200, 400)
    assert StoppingRecipe(first=50, most=399).marks == (50, 100, 200)


def test_two_scores_per_doubling_ask_for_the_same_gain():
    """Marks are multiples of the first, and gains of both together are those of one."""
    stopping = StoppingRecipe(first=100, most=800, least_gain=0.19, marks_per_doubling=2)
    assert stopping.marks == (100, 200, 300, 400, 600, 800)
    assert stopping.least_gain_of_mark == pytest.approx(0.1)
    # Falling by a tenth per mark, 1.0 becomes 0.81 after two more: not below 0.8.
    judged = stopping.judged(np.full(2, 1.0), np.full(2, 1 / 0.9), 400, np.array([0.8, 0.82]))
    np.testing.assert_allclose(judged, [1 / 0.9, 1.0])


def test_bins_grow_with_the_rows():
    assert [DEFAULT.location.boosting.n_bins(n) for n in (20, 1000, 50_000)] == [63, 100, 255]


def test_steps_are_in_hundreds_unless_fewer():
    assert StepRule(2000, 5000, 600, 6000)(7777) == 2400
    assert StepRule(30, 1, 30, 30)(500) == 30


def test_training_ends_where_doubling_the_steps_cannot_beat_others():
    """From 4 to 2, then by halves: 1, 0.5 and 0.25 after 800, 1,600 and 3,200 of 3,200 steps."""
    stopping = StoppingRecipe(first=100, most=3200)
    before, scores = np.full(3, 4.0), np.full(3, 2.0)
    judged = stopping.judged(scores, before, 400, np.array([0.26, 0.24, np.inf]))
    np.testing.assert_array_equal(judged, [2.0, 4.0, 2.0])
    first = stopping.judged(scores, np.full(3, np.inf), 100, np.zeros(3))
    np.testing.assert_array_equal(first, scores)  # nothing to compare with yet
