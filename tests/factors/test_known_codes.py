"""Codes whose factors are known: what must be certified is, with exactly the true factors; what must not is not."""

import numpy as np
import pytest
from hand_made import LATENTS, exact, found_by_code, found_in, latents, world

DISCRETE = ["still_lamp", "taxi", "fourrooms", "doorkey"]


def certified_exact(name, code, **how):
    z = latents(world(name), code, **how)
    found = found_in(world(name), z)
    assert found.certificate.certified, found.certificate.because
    assert exact(found, world(name), z)
    return found


def not_certified(name, code, reason, **how):
    found = found_by_code(world(name), code, **how)
    assert not found.certificate.certified
    assert reason in " ".join(found.certificate.because), found.certificate.because
    return found


@pytest.mark.parametrize("name", DISCRETE)
class TestTheTruth:
    def test_as_it_is(self, name):
        certified_exact(name, world(name).factors)

    @pytest.mark.parametrize("K", [LATENTS, 24])
    def test_rotated(self, name, K):
        certified_exact(name, world(name).factors, rotate=True, K=K)

    def test_with_copies(self, name):
        true = world(name).factors
        certified_exact(name, np.concatenate([true, true[:, :2], true], axis=1))

    def test_in_unequal_units(self, name):
        true = world(name).factors
        certified_exact(name, true, units=np.linspace(2, 6, true.shape[1]))

    def test_in_any_scale(self, name):
        certified_exact(name, world(name).factors, units=1e-3, noise=3e-5, constant=1e-4)
        certified_exact(name, world(name).factors, units=1e4, noise=300.0, constant=1e3)

    def test_with_one_state_in_a_thousand_wrong(self, name):
        found = found_in(world(name), wrong(name, 0.001))
        assert found.certificate.certified, found.certificate.because

    def test_with_one_state_in_a_hundred_wrong(self, name):
        found = found_in(world(name), wrong(name, 0.01))
        assert not found.certificate.certified


def wrong(name, share):
    """Latents of the truth, but for a share of frames that show a random other state."""
    rng = np.random.default_rng(0)
    true = world(name).factors.copy()
    rows = rng.random(len(true)) < share
    true[rows] = true[rng.integers(0, len(true), rows.sum())]
    return latents(world(name), true, rotate=True)


@pytest.mark.parametrize("name", DISCRETE)
class TestNoCode:
    def test_random_codes(self, name):
        table = np.random.default_rng(0).normal(size=(world(name).picture.max() + 1, LATENTS))
        found = found_in(world(name), latents(world(name), table[world(name).picture]))
        assert not found.certificate.certified

    def test_random_codes_of_the_controllable_state(self, name):
        _, state = np.unique(world(name).factors, axis=0, return_inverse=True)
        table = np.random.default_rng(0).normal(size=(state.max() + 1, LATENTS))
        found = found_in(world(name), latents(world(name), table[state.reshape(-1)], noise=0.01, constant=0.0))
        assert not found.certificate.certified

    def test_constants(self, name):
        found = found_in(world(name), np.ones((len(world(name).picture), LATENTS)))
        assert not found.certificate.certified
        assert found.read(np.ones((7, LATENTS))).shape == (7, 0)

    def test_nothing_but_noise(self, name):
        found = found_in(world(name), np.random.default_rng(0).normal(size=(len(world(name).picture), LATENTS)))
        assert not found.certificate.certified

    def test_not_numbers(self, name):
        z = latents(world(name), world(name).factors)
        z[len(z) // 2, 0] = np.nan
        assert found_in(world(name), z).certificate.because == ("the latents are not finite",)

    def test_two_states_in_one(self, name):
        true = world(name).factors
        lowest = true[:, 0].min()
        first = np.maximum(true[:, 0], lowest + 1)
        not_certified(name, [first, *true.T[1:]], "no step")


class TestHeadings:
    """A cycle of four is two bits, too: both codes have one step a turn."""

    def bits(self, name):
        x, y, heading = world(name).columns("agent_x", "agent_y", "dir")
        rest = world(name).factors[:, 3:]
        return np.concatenate([np.stack([x, y, heading // 2, (heading + 1) // 2 % 2], axis=1), rest], axis=1)

    @pytest.mark.parametrize("name", ["fourrooms", "doorkey"])
    def test_as_two_bits(self, name):
        found = certified_exact(name, self.bits(name), rotate=True)
        cycle = [factor for factor in found.factors if factor.cycle]
        assert len(cycle) == 1 and cycle[0].levels == 4 and len(cycle[0].pieces) == 2

    @pytest.mark.parametrize("name", ["fourrooms", "doorkey"])
    def test_folded_into_x(self, name):
        x, y, heading = world(name).columns("agent_x", "agent_y", "dir")
        not_certified(name, [4 * x + heading, y, *world(name).factors[:, 3:].T], "one step")

    @pytest.mark.parametrize("name", ["fourrooms", "doorkey"])
    def test_ego_coordinates(self, name):
        x, y, heading = world(name).columns("agent_x", "agent_y", "dir")
        along = np.choose(heading, [x, y, -x, -y])
        across = np.choose(heading, [y, -x, -y, x])
        not_certified(name, [along, across, heading, *world(name).factors[:, 3:].T], "one step")

    @pytest.mark.parametrize("name", ["fourrooms", "doorkey"])
    def test_diagonal_axes_span_the_same_lattice(self, name):
        x, y, *rest = world(name).factors.T
        certified_exact(name, [x + y, x - y, *rest])


class TestDoorKey:
    def test_key_and_door_in_one_chain(self):
        *places, key, opened = world("doorkey").factors.T
        found = certified_exact("doorkey", [*places, key + opened])
        assert found.levels.weights.shape[1] == 4

    def test_key_and_door_folded(self):
        """The key counts up, the door counts down again: two states look the same that random pairs seldom show."""
        *places, key, opened = world("doorkey").factors.T
        not_certified("doorkey", [*places, key - opened], "undone")

    def test_heading_and_key_in_one(self):
        x, y, heading, key, opened = world("doorkey").factors.T
        not_certified("doorkey", [x, y, heading + 4 * key, opened], "one step")

    def test_without_a_door(self):
        not_certified("doorkey", world("doorkey").factors[:, :4], "no step")

    def test_axes_swapped_once_the_key_is_held(self):
        x, y, heading, key, opened = world("doorkey").factors.T
        swapped = np.where(key == 1, y, x), np.where(key == 1, x, y)
        not_certified("doorkey", [*swapped, heading, key, opened], "one step")


class TestFourRooms:
    def test_places_in_one_latent(self):
        x, y, heading = world("fourrooms").factors.T
        not_certified("fourrooms", [16 * y + x, heading], "one step")

    def test_gray_pair(self):
        """Forward moves x, now up, now down: its levels in two latents might be two factors of a narrow corridor."""
        x, y, heading = world("fourrooms").factors.T
        not_certified("fourrooms", [(x + 1) // 2, x // 2, y, heading], "never apart", rotate=True)

    def test_goal_added_to_x_stays_free(self):
        """What an episode keeps may shift its levels: moves are the same, states of one episode are told apart."""
        x, y, heading = world("fourrooms").factors.T
        goal = world("fourrooms").all_factors[:, 3].astype(int)
        assert found_by_code(world("fourrooms"), [x + goal, y, heading]).certificate.certified


class TestTaxi:
    def true(self):
        return world("taxi").columns("taxi_x", "taxi_y", "passenger_x", "passenger_y", "in_taxi")

    @pytest.mark.parametrize("rotate", [False, True])
    def test_passenger_as_seen_from_the_taxi(self, rotate):
        tx, ty, px, py, inside = self.true()
        certified_exact("taxi", [tx, ty, px - tx, py - ty, inside], rotate=rotate)
        certified_exact("taxi", [px, py, px - tx, py - ty, inside], rotate=rotate)
        certified_exact("taxi", [tx, ty, px - tx, py, inside], rotate=rotate)

    def test_each_step_of_the_certificate_is_one_of_taxi_or_of_both(self):
        found = certified_exact("taxi", self.true())
        assert np.abs(found.levels.to_steps).sum() == 7

    def test_taxi_merged(self):
        tx, ty, px, py, inside = self.true()
        not_certified("taxi", [5 * ty + tx, px, py, inside], "one step")

    def test_gray_pair(self):
        """With a passenger inside, its steps are four in three dimensions: no basis has each as one step."""
        tx, ty, px, py, inside = self.true()
        not_certified("taxi", [(tx + 1) // 2, tx // 2, ty, px, py, inside], "one step")

    def test_centre_while_inside(self):
        tx, ty, px, py, inside = self.true()
        not_certified("taxi", [tx, ty, np.where(inside, 2, px), np.where(inside, 2, py), inside], "one step")

    def test_a_sixth_level_while_inside(self):
        tx, ty, px, py, inside = self.true()
        not_certified("taxi", [tx, ty, np.where(inside, 5, px), py], "one step")

    def test_shrunk_at_the_end_while_inside(self):
        tx, ty, px, py, inside = self.true()
        not_certified("taxi", [tx, ty, np.where(inside, np.minimum(px, 3), px), py, inside], "")

    def test_inside_folded_into_the_passenger(self):
        tx, ty, px, py, inside = self.true()
        not_certified("taxi", [tx, ty, px + 5 * inside, py], "whole number")


class TestLamp:
    def test_flips_by_itself_are_two_steps_now_and_then(self):
        not_certified("lamp", world("lamp").factors, "one step")

    def test_two_switches_stay_two(self):
        found = certified_exact("still_lamp", world("still_lamp").factors)
        assert found.describe(world("still_lamp").action_names) == (
            "moved by switch_power; 2 levels",
            "moved by switch_colour; 2 levels",
        ) or sorted(found.describe(world("still_lamp").action_names)) == [
            "moved by switch_colour; 2 levels",
            "moved by switch_power; 2 levels",
        ]

    def test_two_switches_in_one_ring(self):
        power, colour = world("still_lamp").factors.T
        not_certified("still_lamp", [2 * power + (power + colour) % 2], "ring")
