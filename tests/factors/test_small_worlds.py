"""Worlds made to deceive: what a certificate may say of them is known."""

import numpy as np
import pytest
from hand_made import exact, found_in, latents, split
from worlds import clipped, walk

from acf.factors import find_factors


def plane(levels):
    """Left, right, down and up on a square, and an action that does nothing."""

    def rule(state, action):
        x, y = state
        dx, dy = [(-1, 0), (1, 0), (0, -1), (0, 1), (0, 0)][action]
        return clipped(x, dx, levels), clipped(y, dy, levels)

    return walk(rule, [(x, y) for x in range(levels) for y in range(levels)], 5)


def compass(levels, width=3):
    """A place that two actions move, and a heading that two others turn."""

    def rule(state, action):
        x, heading = state
        dx, turn = [(-1, 0), (1, 0), (0, -1), (0, 1)][action]
        return clipped(x, dx, width), (heading + turn) % levels

    return walk(rule, [(x, h) for x in range(width) for h in range(levels)], 4, ("x", "dir"))


def certified_exact(world, code, **how):
    z = latents(world, code, rotate=True, **how)
    found = found_in(world, z)
    assert found.certificate.certified, found.certificate.because
    assert exact(found, world, z)
    return found


def refused(world, code, reason="", **how):
    found = found_in(world, latents(world, code, **how))
    assert not found.certificate.certified
    assert reason in " ".join(found.certificate.because), found.certificate.because


class TestPlane:
    @pytest.mark.parametrize("levels", [2, 3, 6])
    def test_the_truth(self, levels):
        certified_exact(plane(levels), plane(levels).factors)

    def test_gray_pair(self):
        x, y = plane(6).factors.T
        certified_exact(plane(6), [(x + 1) // 2, x // 2, y])

    def test_two_gray_pairs(self):
        x, y = plane(6).factors.T
        certified_exact(plane(6), [(x + 1) // 2, x // 2, (y + 1) // 2, y // 2])

    def test_an_axis_for_every_step_of_x(self):
        x, y = plane(6).factors.T
        certified_exact(plane(6), [*[x > n for n in range(5)], y])

    def test_x_folded_in_the_middle(self):
        x, y = plane(5).factors.T
        refused(plane(5), [np.abs(x - 2), y], "look")

    def test_x_and_y_added(self):
        x, y = plane(4).factors.T
        refused(plane(4), [x + y], "look")

    def test_without_y(self):
        refused(plane(4), [plane(4).factors[:, 0]])

    def test_levels_that_no_action_reaches_alone(self):
        x, y = plane(4).factors.T
        refused(plane(4), [x + (x > 1) + (x > 2), y])


class TestRings:
    @pytest.mark.parametrize("levels", [3, 4, 5, 6])
    def test_on_one_axis(self, levels):
        found = certified_exact(compass(levels), compass(levels).factors)
        assert [factor.levels for factor in found.factors if factor.cycle] == [levels]

    def test_six_headings_as_three_bits(self):
        x, heading = compass(6).factors.T
        bits = [(heading - n) % 6 < 3 for n in range(3)]
        certified_exact(compass(6), [x, *bits])

    def test_six_headings_around_a_two_by_three(self):
        x, heading = compass(6).factors.T
        certified_exact(compass(6), [x, np.array([0, 1, 2, 2, 1, 0])[heading], heading // 3])

    def test_eight_headings_as_four_bits(self):
        x, heading = compass(8).factors.T
        certified_exact(compass(8), [x, *[(heading - n) % 8 < 4 for n in range(4)]])

    def test_headings_out_of_order(self):
        x, heading = compass(5).factors.T
        refused(compass(5), [x, np.array([0, 2, 1, 4, 3])[heading]])


class TestChains:
    """A chain is no ring, though in a wrong order it may look like one that never is closed."""

    @pytest.mark.parametrize("order", [[1, 0, 2], [2, 3, 0, 1], [3, 4, 0, 1, 2]])
    def test_out_of_order(self, order):
        world = walk(lambda s, a: (clipped(s[0], 2 * a - 1, len(order)),), [(n,) for n in range(len(order))], 2)
        refused(world, [np.array(order)[world.factors[:, 0]]])

    @pytest.mark.parametrize("levels", [3, 4, 5])
    def test_that_starts_again(self, levels):
        """One action up, and another from the top to the bottom: no ring, for not the same actions move it."""
        world = walk(
            lambda s, a: (clipped(s[0], 1, levels),) if a == 0 else (0 if s[0] == levels - 1 else s[0],),
            [(n,) for n in range(levels)],
            2,
        )
        refused(world, world.factors)


class TestTrees:
    """Where nothing forms a square, each move can have an axis of its own: random codes are whole-numbered there."""

    def star(self):
        """From the hub three actions lead into three arms; within one they lead on, and a fourth leads back."""

        def rule(state, action):
            arm, far = state
            if action == 3:
                return (arm, far - 1) if far > 1 else (0, 0)
            return (1 + action, 1) if far == 0 else (arm, clipped(far, 1, 4))

        return walk(rule, [(0, 0), (1, 1), (2, 1), (3, 2)], 4)

    def test_random_codes_of_a_star(self):
        world = self.star()
        _, state = np.unique(world.factors, axis=0, return_inverse=True)
        table = np.random.default_rng(0).normal(size=(state.max() + 1, 12))
        refused(world, table[state.reshape(-1)], constant=0.0, noise=0.01)

    def test_a_chain_is_a_chain_in_any_code(self):
        world = walk(lambda s, a: (clipped(s[0], 2 * a - 1, 6),), [(n,) for n in range(6)], 2)
        table = np.random.default_rng(0).normal(size=(6, 12))
        certified_exact(world, table[world.factors[:, 0]], constant=0.0, noise=0.01)


class TestOneWay:
    def world(self):
        """Two counters that only fall: no episode sees two states of the same sum."""

        def rule(state, action):
            x, y = state
            return (max(x - 1, 0), y) if action == 0 else (x, max(y - 1, 0))

        return walk(rule, [(x, y) for x in range(4) for y in range(4)], 2)

    def test_sum_of_both(self):
        refused(self.world(), [self.world().factors.sum(1)], "one way")

    def test_both(self):
        certified_exact(self.world(), self.world().factors)


class TestOwnership:
    def test_phases_of_one_action_are_one_factor(self):
        """Nothing but which action does it tells a key from a door."""

        def rule(state, action):
            x, phase = state
            return (clipped(x, [-1, 1, 0][action], 4), clipped(phase, int(action == 2 and x == phase), 3))

        world = walk(rule, [(x, p) for x in range(4) for p in range(3)], 3)
        certified_exact(world, world.factors)
        x, phase = world.factors.T
        certified_exact(world, [x, phase > 0, phase > 1])

    def test_two_switches_of_one_hand(self):
        """The hand is at one of two switches; pressing is one action for both."""

        def rule(state, action):
            hand, one, other = state
            if action == 2:
                return (hand, 1 - one, other) if hand == 0 else (hand, one, 1 - other)
            return (action, one, other)

        world = walk(rule, [(h, a, b) for h in (0, 1) for a in (0, 1) for b in (0, 1)], 3)
        certified_exact(world, world.factors)

    def test_an_undone_switch(self):
        def rule(state, action):
            x, on = state
            return clipped(x, [-1, 1, 0, 0][action], 4), (on, on, 1, 0)[action]

        world = walk(rule, [(x, on) for x in range(4) for on in (0, 1)], 4)
        certified_exact(world, world.factors)


class TestTooLittle:
    def test_few_episodes(self):
        world = walk(lambda s, a: (clipped(s[0], 2 * a - 1, 5),), [(2,)], 2, episodes=20, horizon=200)
        refused(world, world.factors, "episodes")

    def test_episodes_of_one_transition(self):
        def rule(state, action):
            return clipped(state[0], [-1, 1, 0, 0][action], 5), clipped(state[1], [0, 0, -1, 1][action], 5)

        starts = [(x, y) for x in range(5) for y in range(5)]
        world = walk(rule, starts, 4, episodes=4000, horizon=1)
        refused(world, world.factors, "pairs")

    def test_a_tiny_held_out_part(self):
        world = plane(5)
        train, judge = split(world, latents(world, world.factors), held_out=0.003)
        assert len(np.unique(judge.episode)) <= 2
        assert not find_factors(train, judge, 5).certificate.certified

    def test_nothing_held_out(self):
        world = plane(5)
        train, judge = split(world, latents(world, world.factors), held_out=0.0)
        assert len(judge.z) == 0
        assert not find_factors(train, judge, 5).certificate.certified

    def test_no_training_part(self):
        world = plane(5)
        _, judge = split(world, latents(world, world.factors))
        empty = judge._replace(**{name: value[:0] for name, value in judge._asdict().items()})
        assert not find_factors(empty, judge, 5).certificate.certified

    def test_an_action_that_hardly_ever_works(self):
        def rule(state, action):
            x, y, lever = state
            x, y = clipped(x, [-1, 1, 0, 0, 0][action], 5), clipped(y, [0, 0, -1, 1, 0][action], 5)
            return x, y, int(lever or (action == 4 and (x, y) == (0, 0)))

        starts = [(x, y, int(x > 0)) for x in range(1, 5) for y in range(5)]
        starts += [(0, 4, 0)]
        world = walk(rule, starts, 5, episodes=300)
        assert ((world.factors[world.j, 2] > world.factors[world.i, 2]) & (world.action == 4)).sum() > 0
        refused(world, world.factors, "too few")

    def test_an_action_seen_in_training_only(self):
        world = plane(4)
        train, judge = split(world, latents(world, world.factors))
        rows = judge.action != 3
        judge = judge._replace(**{name: value[rows] for name, value in judge._asdict().items()})
        assert "elsewhere" in " ".join(find_factors(train, judge, 5).certificate.because)


class TestManyActions:
    def world(self, spoil=()):
        """84 actions, of which each moves one of two coordinates one way; those in `spoil` jump by two."""

        def rule(state, action):
            step = [(-1, 0), (1, 0), (0, -1), (0, 1)][action % 4]
            times = 2 if action in spoil else 1
            return clipped(state[0], step[0] * times, 7), clipped(state[1], step[1] * times, 7)

        return walk(rule, [(x, y) for x in range(7) for y in range(7)], 84, episodes=700)

    def test_the_truth(self):
        world = self.world()
        certified_exact(world, world.factors)

    def test_one_action_of_84_is_wrong(self):
        world = self.world(spoil=(50,))
        refused(world, world.factors, "action 50")


def test_rare_action_gets_its_axis():
    """A lever moved about sixty times in all."""

    def rule(state, action):
        x, y, lever = state
        x, y = clipped(x, [-1, 1, 0, 0, 0][action], 5), clipped(y, [0, 0, -1, 1, 0][action], 5)
        return x, y, 1 if action == 4 and (x, y) == (0, 0) else lever

    starts = [(x, y, 0) for x in range(5) for y in range(5)]
    world = walk(rule, starts, 5, episodes=600, horizon=12)
    certified_exact(world, world.factors)


def test_single_latent():
    world = walk(lambda s, a: (clipped(s[0], 2 * a - 1, 5),), [(n,) for n in range(5)], 2)
    z = latents(world, world.factors, K=1)
    assert z.shape[1] == 1
    assert exact(found_in(world, z), world, z)


def test_result_does_not_hang_on_the_order_of_episodes():
    world = plane(5)
    train, judge = split(world, latents(world, world.factors, rotate=True))
    order = np.argsort(np.random.default_rng(0).permutation(judge.episode.max() + 1)[judge.episode], kind="stable")
    other = judge._replace(**{name: value[order] for name, value in judge._asdict().items()})
    assert find_factors(train, judge, 5).certificate.one_step == find_factors(train, other, 5).certificate.one_step
