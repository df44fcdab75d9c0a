"""Every loss against its published formula, summed term by term in Python."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.objectives import fused_mmd, squared_mmd
from nkcme.rl import C51, DQN, MMDQN, NKDQN

GAMMA = 0.9
SUPPORT = (-6.0, 9.0)
REWARDS = (-1.0, 0.0, 2.5)
REWARD_SUPPORT = tuple(product(REWARDS, (0.0, GAMMA)))
M = 7

FUSE = NKDQN(n_atoms=M, support=SUPPORT, bandwidths=(0.5, 2.0, 7.0))
SINGLE = NKDQN(n_atoms=M, support=SUPPORT, kernels="single", bandwidths=(2.0,))
CATEGORICAL = C51(n_atoms=M, support=SUPPORT)
PARTICLES = MMDQN(n_particles=M, bandwidths=(0.5, 2.0, 7.0))


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@partial(jax.jit, static_argnums=(0, 5))
def losses(agent, output, target, reward, discount, support=None):
    return agent.losses(output, target, reward, discount, support)


def example(width, seed=0, any_reward=False):
    """Outputs, targets, rewards and discounts; each reward with discount gamma and 0."""
    rng = np.random.default_rng(seed)
    reward, discount = np.array(REWARD_SUPPORT * 2).T
    n = len(reward)
    if any_reward:
        reward = rng.normal(scale=8.0, size=n)
        discount = np.where(discount > 0, rng.uniform(0.3, 1.0, n), 0.0)
    return rng.normal(scale=2.0, size=(n, width)), rng.normal(size=(n, width)), reward, discount


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def k(a, b, sigma):
    """The Gaussian kernel without its density factor."""
    return math.exp(-((a - b) ** 2) / (2.0 * sigma**2))


def slow_squared_mmd(w, v, eta, tau, sigma):
    """d^2 of section 5.2: sum k(tau, tau) v v - 2 sum k(tau, eta) v w + sum k(eta, eta) w w."""
    total = 0.0
    for a, b in product(range(len(w)), range(len(w))):
        total += k(tau[a], tau[b], sigma) * v[a] * v[b]
        total -= 2.0 * k(tau[a], eta[b], sigma) * v[a] * w[b]
        total += k(eta[a], eta[b], sigma) * w[a] * w[b]
    return total


def slow_nkdqn(agent, bandwidths, output, target, r, d):
    w, v = softmax(output), softmax(target)
    eta = np.linspace(*agent.support, agent.n_atoms)
    squares = [slow_squared_mmd(w, v, eta, r + d * eta, sigma) for sigma in bandwidths]
    if agent.kernels == "single":
        return squares[0]
    return math.log(sum(math.exp(s) for s in squares) / len(squares))


def slow_projection(v, eta, r, d):
    """Algorithm 1 of Bellemare et al."""
    spacing = (eta[-1] - eta[0]) / (len(eta) - 1)
    mass = np.zeros(len(eta))
    for a in range(len(eta)):
        tau = min(max(r + d * eta[a], eta[0]), eta[-1])
        place = (tau - eta[0]) / spacing
        low = min(math.floor(place + 1e-9), len(eta) - 1)
        high = min(low + 1, len(eta) - 1)
        mass[low] += v[a] * (1.0 - (place - low))
        mass[high] += v[a] * (place - low)
    return mass


def slow_c51(agent, output, target, r, d):
    eta = np.linspace(*agent.support, agent.n_atoms)
    mass, p = slow_projection(softmax(target), eta, r, d), softmax(output)
    return -sum(mass[a] * math.log(min(max(p[a], 1e-5), 1.0 - 1e-5)) for a in range(len(eta)))


def slow_mmdqn(agent, output, target, r, d):
    """The mean over kernels of the biased squared MMD between equally weighted particles."""
    tau, even = r + d * target, np.full(len(output), 1.0 / len(output))
    squares = [slow_squared_mmd(even, even, output, tau, sigma) for sigma in agent.bandwidths]
    return sum(squares) / len(squares)


def slow_dqn(agent, output, target, r, d):
    return (r + d * target[0] - output[0]) ** 2


SLOW = {
    "fuse": (FUSE, lambda *a: slow_nkdqn(a[0], (0.5, 2.0, 7.0), *a[1:])),
    "single": (SINGLE, lambda *a: slow_nkdqn(a[0], (2.0,), *a[1:])),
    "c51": (CATEGORICAL, slow_c51),
    "mmdqn": (PARTICLES, slow_mmdqn),
    "dqn": (DQN(), slow_dqn),
}


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("support", [None, REWARD_SUPPORT], ids=["general", "finite"])
def test_losses_equal_their_formulas(name, support):
    agent, slow = SLOW[name]
    batch = example(agent.width)
    expected = [slow(agent, *row) for row in zip(*batch, strict=True)]
    np.testing.assert_allclose(losses(agent, *batch, support), expected, rtol=1e-10)


@pytest.mark.parametrize("name", SLOW)
def test_losses_equal_their_formulas_for_any_reward_and_discount(name):
    agent, slow = SLOW[name]
    batch = example(agent.width, any_reward=True)
    expected = [slow(agent, *row) for row in zip(*batch, strict=True)]
    np.testing.assert_allclose(losses(agent, *batch), expected, rtol=1e-10)


@pytest.mark.parametrize("agent", [FUSE, SINGLE])
@pytest.mark.parametrize("support", [None, REWARD_SUPPORT], ids=["general", "finite"])
def test_gradients_equal_those_of_the_formula(agent, support):
    """The formula is differentiated automatically."""
    output, target, reward, discount = map(jnp.asarray, example(M))
    eta = jnp.linspace(*SUPPORT, M)
    sigma = jnp.asarray(agent.bandwidths)[:, None, None]

    def plain(x, y, r, d):
        w, v, tau = jax.nn.softmax(x), jax.nn.softmax(y), r + d * eta
        gram = lambda a, b: jnp.exp(-(((a[:, None] - b) / sigma) ** 2) / 2)  # noqa: E731
        with jax.numpy_rank_promotion("allow"):
            squares = v @ gram(tau, tau) @ v - 2 * v @ gram(tau, eta) @ w + w @ gram(eta, eta) @ w
        return jnp.log(jnp.mean(jnp.exp(squares))) if agent.kernels == "fuse" else squares[0]

    # The weights reveal a gradient that belongs to another row.
    weight = jnp.arange(1.0, len(output) + 1)
    ours = jax.grad(lambda x: weight @ agent.losses(x, target, reward, discount, support))
    with jax.numpy_rank_promotion("allow"):
        formula = jax.jit(
            jax.grad(lambda x: weight @ jax.vmap(plain)(x, target, reward, discount))
        )(output)
    np.testing.assert_allclose(jax.jit(ours)(output), formula, rtol=1e-9, atol=1e-12)


def test_fused_mmd_has_the_gradient_of_its_formula():
    """For weights of any sign and size, and any numbers as the target."""
    rng = np.random.default_rng(1)
    n, s, m = 3, 4, 5
    w, cross, target = (rng.normal(size=z) for z in ((n, m), (n, s, m), (n, s)))
    half = rng.normal(size=(s, m, m))
    own = half + np.swapaxes(half, 1, 2)
    ct = rng.normal(size=n)

    def plain(w):
        squares = jnp.einsum("na,sab,nb->ns", w, own, w) + target
        squares -= 2.0 * jnp.einsum("nsa,na->ns", cross, w)
        return jnp.log(jnp.mean(jnp.exp(squares), axis=1)), squares

    def value_and_slope(f):
        value, back = jax.vjp(f, w)
        return value, back(ct)[0]

    squares = jax.jit(squared_mmd)(w, own, target, cross)
    np.testing.assert_allclose(squares, jax.jit(plain)(w)[1], rtol=1e-10)
    ours = jax.jit(lambda: value_and_slope(lambda w: fused_mmd(w, own, target, cross)))()
    formula = jax.jit(lambda: value_and_slope(lambda w: plain(w)[0]))()
    np.testing.assert_allclose(ours[0], formula[0], rtol=1e-10)
    np.testing.assert_allclose(ours[1], formula[1], rtol=1e-9)


@pytest.mark.parametrize("support", [None, REWARD_SUPPORT], ids=["general", "finite"])
def test_one_fused_kernel_gives_the_loss_of_a_single_one(support):
    one = NKDQN(n_atoms=M, support=SUPPORT, bandwidths=SINGLE.bandwidths)
    batch = [jnp.asarray(b) for b in example(M, seed=2)]
    single = losses(SINGLE, *batch, support)
    np.testing.assert_allclose(losses(one, *batch, support), single, rtol=1e-11)
    slopes = [
        jax.jit(jax.grad(lambda x, a=a: jnp.sum(a.losses(x, *batch[1:], support))))
        for a in (one, SINGLE)
    ]
    np.testing.assert_allclose(slopes[0](batch[0]), slopes[1](batch[0]), rtol=1e-9)


@pytest.mark.parametrize(
    ("support", "rewards"),
    [
        ((0.0, 1e-3), (0.0, 5e-5, 1e-4)),
        ((0.0, 1e-5), (0.0, 1e-6)),
        ((900.0, 1100.0), (1000.0, 1000.05)),
        ((-1e6, 1e6), (-1e5, 3e4)),
    ],
)
def test_a_finite_reward_support_is_exact_in_any_unit(support, rewards):
    """Rewards that are close on one scale are far apart on another."""
    agent = NKDQN(n_atoms=M, support=support)
    pairs = tuple(product(rewards, (0.0, GAMMA)))
    reward, discount = jnp.asarray(pairs).T
    rng = np.random.default_rng(3)
    output, target = (jnp.asarray(rng.normal(size=(len(pairs), M))) for _ in range(2))
    general = losses(agent, output, target, reward, discount)
    assert len(np.unique(np.round(general, 9))) == len(pairs)
    constants = losses(agent, output, target, reward, discount, pairs)
    np.testing.assert_allclose(constants, general, rtol=1e-9)


def test_default_bandwidths_are_the_papers():
    """Distances are 4 j, for (51 - j) pairs each; the 5th percentile is 4, the 95th 156."""
    agent = NKDQN()
    np.testing.assert_allclose(agent.atoms, -100.0 + 4.0 * np.arange(51))
    np.testing.assert_allclose(agent.all_bandwidths(), np.linspace(2.0, 78.0, 10))
    assert NKDQN(kernels="single").all_bandwidths().tolist() == [10.0]
    np.testing.assert_allclose(MMDQN().bandwidths, np.linspace(1.0, 100.0, 10))


def test_few_atoms_have_positive_bandwidths():
    """With few atoms more than a twentieth of the distances are zero: of atoms to themselves."""
    agent = NKDQN(n_atoms=5, support=(0.0, 8.0))
    assert agent.all_bandwidths().min() == 1.0


def test_projection_keeps_the_mean_inside_the_support_and_clips_outside():
    rng = np.random.default_rng(4)
    v = jnp.asarray(rng.dirichlet(np.ones(M), size=3))
    reward, discount = jnp.array([0.3, -50.0, 50.0]), jnp.array([0.5, 0.5, 0.5])
    mass = CATEGORICAL.project(v, reward, discount)
    eta = CATEGORICAL.atoms
    np.testing.assert_allclose(mass.sum(axis=1), 1.0)
    np.testing.assert_allclose(mass[0] @ eta, 0.3 + 0.5 * (v[0] @ eta))
    np.testing.assert_allclose(mass[1:], np.eye(M)[[0, -1]], atol=1e-12)


def test_c51_clips_probabilities_inside_the_logarithm():
    certain = jnp.full((1, M), -1e3).at[0, 2].set(1e3)
    eta = CATEGORICAL.atoms
    for atom, expected in ((2, -math.log(1.0 - 1e-5)), (4, -math.log(1e-5))):
        at = jnp.asarray(eta[atom : atom + 1])
        loss = CATEGORICAL.losses(certain, jnp.zeros((1, M)), at, jnp.zeros(1))
        np.testing.assert_allclose(loss, [expected], rtol=1e-6)


@pytest.mark.parametrize("agent", [FUSE, CATEGORICAL])
def test_mass_outside_counts_from_one_spacing_beyond_the_support(agent):
    """The atoms are -6, -3.5, ..., 9; with r = 4 and d = 1 the last two move to 10.5 and 13."""
    target = jnp.asarray(np.log([[0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.3]]))
    one = jnp.ones(1)
    np.testing.assert_allclose(agent.mass_outside(target, 4.0 * one, one), [0.3])
    np.testing.assert_allclose(agent.mass_outside(target, -4.0 * one, one), [0.1])
    np.testing.assert_allclose(agent.mass_outside(target, 20.0 * one, 0.0 * one), [1.0])
    np.testing.assert_allclose(agent.mass_outside(target, 0.0 * one, one), [0.0], atol=0)
