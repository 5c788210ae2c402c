"""Trees, combinations and the factored model, on rules that are known."""

import numpy as np
import pytest
from agents_worlds import Chain, Errand

from acf.agents.combinations import Combinations
from acf.agents.explore import Novelty, RewardSearch
from acf.agents.model import FactoredModel
from acf.agents.tree import fit, predict


def every_transition(world):
    """All states under all actions: before, actions, after."""
    states = world.every_state()
    before = np.repeat(states, len(world.action_names), axis=0)
    actions = np.tile(np.arange(len(world.action_names)), len(states))
    return before, actions, world.step(0, before, actions)[1]


def test_tree_recovers_a_rule_of_three_features_exactly():
    X = np.indices((5, 4, 3, 2)).reshape(4, -1).T
    y = np.where(X[:, 0] == 2, 7, np.where(X[:, 1] <= 1, -1, 3))
    tree = fit(X, y)
    assert np.array_equal(predict(tree, X), y)
    assert tree.features == [0, 1] and tree.leaves <= 4  # greedily: one more than needed


def test_tree_learns_what_no_single_question_tells():
    X = np.indices((2, 2)).reshape(2, -1).T
    y = X[:, 0] ^ X[:, 1]
    assert np.array_equal(predict(fit(X, y), X), y)


def test_tree_takes_the_most_frequent_label_of_rows_that_contradict_each_other():
    X = np.zeros((3, 2), int)
    assert predict(fit(X, np.array([5, 5, 8])), X).tolist() == [5, 5, 5]


def test_among_equal_questions_the_first_feature_wins():
    x = np.array([0, 0, 1])
    assert fit(np.stack([x, x], axis=1), x).features == [0]


def test_model_of_the_errand_has_its_parents_and_few_leaves():
    world = Errand()
    data = every_transition(world)
    model = FactoredModel.fit(*data, n_actions=5, units=world.units)
    assert model.accuracy(*data) == 1
    assert model.pairs.tolist() == [[1, 0]]
    assert model.parents(2, 0) == {0}  # right: whether the cart is at the end
    assert model.parents(2, 1) == {0, 2}  # the parcel moves if the cart does and it is loaded
    assert model.parents(3, 2) <= {0, 1, 2} and model.parents(3, 2) >= {0, 1}
    assert model.parents(4, 3) == {3}
    assert [k for k in range(4) for a in range(5) if model.moves(a, k)] == [0, 0, 1, 1, 2, 3]
    # Left and right: 2 for the cart, 3 for the parcel; load at most 4; the lamp 2.
    assert model.leaves <= 2 * 5 + 4 + 2


def test_factors_that_move_together_are_subtracted_without_units():
    world = Errand()
    model = FactoredModel.fit(*every_transition(world), n_actions=5)
    assert [1, 0] in model.pairs.tolist()


def test_a_model_learned_one_by_one_is_right_about_what_it_saw():
    world = Errand()
    before, actions, after = every_transition(world)
    order = np.random.default_rng(3).permutation(len(actions))
    model = FactoredModel(4, 5, 0)
    for row in order:
        model.add(before[row], int(actions[row]), after[row])
    assert model.accuracy(before, actions, after) == 1


def test_effects_are_told_relative_to_the_no_op():
    """Everything drifts by one on a ring of seven; `push` adds two: one leaf, where the plain changes need more."""
    states = np.arange(7).repeat(2)[:, None]
    actions = np.tile([0, 1], 7)
    after = (states + 1) % 7 + 2 * actions[:, None]
    model = FactoredModel.fit(states, actions, after, n_actions=2)
    assert model.accuracy(states, actions, after) == 1
    assert model.parents(1, 0) == set() and model.moves(1, 0)


def test_a_chain_has_two_leaves_a_direction():
    world = Chain(6)
    before = np.arange(6).repeat(3)[:, None]
    actions = np.tile([0, 1, 2], 6)
    model = FactoredModel.fit(before, actions, world.step(0, before, actions)[1], n_actions=3)
    assert model.leaves == 4


def test_combinations_number_cells_without_a_clash():
    X = np.indices((3, 2, 4)).reshape(3, -1).T - 1
    sets = Combinations([frozenset([k]) for k in range(3)], 2)
    sets.widen(X)
    ids = sets.ids(X)
    assert sets.sets == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    assert sets.cells.tolist() == [3, 2, 4, 6, 12, 8]
    assert len(np.unique(ids)) == sets.cells.sum() and ids.max() == sets.cells.sum() - 1
    assert (sets.ids(np.array([[9, 0, 0]])) == -1).tolist() == [[True, False, False, True, True, False]]


def test_no_set_names_a_factor_twice():
    sets = Combinations([frozenset([0, 1]), frozenset([0]), frozenset([1])], 3)
    assert sets.sets == [(0,), (1,), (2,), (1, 2)]


def test_novelty_is_what_is_new_with_this_action():
    novelty = Novelty([frozenset([0]), frozenset([1])], 2, order=2)
    for row in ([0, 0], [1, 1]):
        novelty.add(np.array(row), 0)
    assert novelty.score(np.array([[0, 0], [0, 1]])) == pytest.approx(np.array([[0, 1], [0.5, 1]]))


def test_the_reward_is_found_to_be_of_two_factors():
    states = np.indices((3, 3, 2)).reshape(3, -1).T
    reward = (states[:, 0] == 2) & (states[:, 2] == 1)
    search = RewardSearch([frozenset([k]) for k in range(3)], order=3)
    for row, r in zip(states, reward, strict=True):
        search.add(row, bool(r))
    assert np.array_equal(search.rewarded(states), reward)
    assert [s for s, kept in zip(search._sets.sets, search.candidates(), strict=True) if kept] == [(0, 2), (0, 1, 2)]
    assert (search.chance(states) == 0).all()  # nothing is left to be found out


def test_before_any_reward_what_was_entered_is_not_worth_another_visit():
    search = RewardSearch([frozenset([k]) for k in range(2)], order=2)
    for row in ([0, 0], [1, 1], [0, 0]):
        search.add(np.array(row), False)
    same, other = search.chance(np.array([[0, 0], [0, 1]]))
    assert same == 0 < other
