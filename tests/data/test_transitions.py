import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acf.data import checks
from acf.data.checks import NOT_SAID, DataError, DataWarning, warn_about_actions
from acf.data.describe import describe
from acf.data.transitions import Transitions

SHAPE = (16, 18, 3)


def painted(n, shape=SHAPE):
    """Frames that tell themselves apart: frame m is filled with m."""
    return np.broadcast_to(np.arange(n, dtype=np.uint8)[:, None, None, None], (n, *shape)).copy()


def int32(values):
    return np.asarray(values, np.int32)


def small(**changes) -> Transitions:
    """Two episodes: frames 0-3 (three steps) and 4-6 (two steps); action 0 is the no-op."""
    fields: dict = {
        "frames": painted(7),
        "i": int32([0, 1, 2, 4, 5]),
        "action": int32([0, 1, 2, 1, 2]),
        "j": int32([1, 2, 3, 5, 6]),
        "episode": int32([0, 0, 0, 0, 1, 1, 1]),
        "action_names": ("stay", "left", "right"),
        "noop": 0,
        "factors": np.arange(14, dtype=np.float32).reshape(7, 2),
        "factor_names": ("x", "y"),
        "controllable": (True, False),
        "source": {"domain": "hand-made"},
    }
    return Transitions(**(fields | changes))


@st.composite
def data_sets(draw, max_episodes=5):
    """Episodes of any length, with gaps: frames that no transition uses, frames used twice, ids in any order."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=max_episodes))
    ids = draw(st.permutations(range(-3, 10)))[: len(lengths)]
    episode = np.repeat(ids, lengths)
    pairs = [(i, j) for i in range(len(episode)) for j in range(len(episode)) if episode[i] == episode[j]]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=10))
    action = draw(st.lists(st.integers(0, 2), min_size=len(chosen), max_size=len(chosen)))
    M = len(episode)
    return small(
        frames=painted(M),
        i=int32([i for i, _ in chosen]),
        j=int32([j for _, j in chosen]),
        action=int32(action),
        episode=int32(episode),
        factors=np.arange(2 * M, dtype=np.float32).reshape(M, 2),
    )


def rows(data: Transitions):
    """What each transition is, whatever the frames' numbers."""
    assert data.factors is not None
    return [
        (int(data.frames[i, 0, 0, 0]), int(a), int(data.frames[j, 0, 0, 0]), *data.factors[i], *data.factors[j])
        for i, a, j in zip(data.i, data.action, data.j, strict=True)
    ]


def test_properties():
    data = small()
    assert (len(data), data.n_actions, data.frame_shape) == (5, 3, SHAPE)
    assert repr(data) == "Transitions(5 transitions, 7 frames of 16x18x3, 3 actions, 2 factors)"


def test_arrays_cannot_be_changed_through_it():
    frames = painted(7)
    data = small(frames=frames)
    with pytest.raises(ValueError, match="read-only"):
        data.i[0] = 99
    assert np.shares_memory(data.frames, frames)
    frames[0] = 1  # the caller's own array stays the caller's


def test_source_is_a_json_copy():
    source: dict = {"shape": (1, 2)}
    data = small(source=source)
    source["more"] = (3,)
    assert data.source == {"shape": [1, 2]}


WRONG = {
    "list for frames": ({"frames": [1, 2]}, r"frames: expected a numpy array uint8\[M, H, W, C\], found list"),
    "float frames": ({"frames": painted(7).astype(np.float32)}, r"frames: expected uint8.*found float32\[7, 16"),
    "grey frames": ({"frames": painted(7)[..., 0]}, r"frames: expected uint8\[M, H, W, C\], found uint8\[7, 16, 18\]"),
    "low frames": ({"frames": painted(7, (15, 16, 3))}, "at least 16 pixels, found 15 x 16"),
    "narrow frames": ({"frames": painted(7, (16, 8, 3))}, "at least 16 pixels, found 16 x 8"),
    "five channels": ({"frames": painted(7, (16, 16, 5))}, "1 to 4 channels.*found 5"),
    "no channels": ({"frames": painted(7, (16, 16, 0))}, "1 to 4 channels.*found 0"),
    "wide index": ({"i": np.arange(5)}, r"i: expected int32\[T\], found int64\[5\]"),
    "short action": ({"action": int32([0, 1])}, r"action: expected int32\[5\], found int32\[2\]"),
    "short j": ({"j": int32([1])}, r"j: expected int32\[5\], found int32\[1\]"),
    "episode of transitions": ({"episode": int32([0] * 5)}, r"episode: expected int32\[7\], found int32\[5\]"),
    "i too high": ({"i": int32([0, 1, 2, 7, 5])}, r"i\[3\]: expected the index of a frame, 0 to 6, found 7"),
    "negative j": ({"j": int32([1, -1, 3, 5, 6])}, r"j\[1\]: expected the index of a frame, 0 to 6, found -1"),
    "unknown action": ({"action": int32([0, 1, 2, 1, 3])}, r"action\[4\]: expected .* an action, 0 to 2, found 3"),
    "across episodes": (
        {"j": int32([1, 2, 4, 5, 6])},
        "transition 2: .*frame i=2 of episode 0 and frame j=4 of episode 1",
    ),
    "nothing": ({k: int32([]) for k in ("i", "action", "j")}, "at least one transition, found none"),
    "one action": ({"action_names": ("stay",)}, "at least two actions, found 1"),
    "names as a list": ({"action_names": ["a", "b"]}, "action_names: expected a tuple of strings"),
    "same name twice": ({"action_names": ("a", "b", "a")}, "distinct names, found 'a' at 0 and at 2"),
    "no-op too high": ({"noop": 3}, "noop: .*0 to 2, found 3.*`--noop`"),
    "negative no-op": ({"noop": -1}, "noop: .*found -1"),
    "no-op a bool": ({"noop": True}, "noop: .*found True"),
    "names without factors": ({"factors": None}, r"factors: expected values for the factors \('x', 'y'\), found none"),
    "wide factors": ({"factors": np.zeros((7, 2))}, r"factors: expected float32\[7, K\], found float64\[7, 2\]"),
    "factors without names": ({"factor_names": (), "controllable": ()}, "factor_names: .*each of the 2 columns"),
    "short mask": ({"controllable": (True,)}, "controllable: .*each of the 2 factors.*found 1"),
    "mask of ints": ({"controllable": (1, 0)}, "controllable: expected a tuple of bools"),
    "source not JSON": ({"source": {"a": np.zeros(2)}}, "source: .*JSON"),
    "source NaN": ({"source": {"a": float("nan")}}, "source: .*JSON"),
    "source a list": ({"source": []}, "source: expected a dict, found list"),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_data_cannot_be_built(changes, message):
    with pytest.raises(DataError, match=message):
        small(**changes)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_factors_are_finite(value):
    factors = np.zeros((7, 2), np.float32)
    factors[3, 1] = value
    with pytest.raises(DataError, match=rf"factors\[3, 1\]: .*found {value} for factor 'y' of frame 3"):
        small(factors=factors)


# select, split, concatenate


@settings(deadline=None, max_examples=50)
@given(data_sets(), st.data())
def test_select(data, draw):
    indices = draw.draw(st.lists(st.integers(0, len(data) - 1), min_size=1))
    selected = data.select(indices)
    assert rows(selected) == [rows(data)[k] for k in indices]
    assert np.shares_memory(selected.frames, data.frames)
    assert selected.source == {"by": "select", "of": data.source}


def test_select_by_mask_and_slice():
    data = small()
    assert rows(data.select(data.action == 1)) == [rows(data)[k] for k in (1, 3)]
    assert rows(data.select(slice(1, 3))) == rows(data)[1:3]
    with pytest.raises(DataError, match="at least one transition"):
        data.select([])


@settings(deadline=None, max_examples=50)
@given(data_sets(), st.floats(0.01, 0.99), st.integers(0, 99))
def test_split_never_shares_an_episode(data, share, seed):
    episodes = set(data.episode[data.i].tolist())
    if len(episodes) < 2:
        with pytest.raises(DataError, match="at least two episodes"):
            data.split(share, seed)
        return
    train, test = data.split(share, seed)
    ours, theirs = (set(part.episode[part.i].tolist()) for part in (train, test))
    assert not ours & theirs
    assert ours | theirs == episodes
    assert min(len(ours), len(theirs)) >= 1
    assert abs(len(theirs) - share * len(episodes)) <= 1
    assert sorted(rows(train) + rows(test)) == sorted(rows(data))
    again = data.split(share, seed)
    assert [rows(part) for part in again] == [rows(train), rows(test)]


def test_split_depends_on_the_seed_and_says_so():
    T = 20
    data = small(
        frames=painted(2 * T),
        i=int32(np.arange(T) * 2),
        j=int32(np.arange(T) * 2 + 1),
        action=int32([0] * T),
        episode=int32(np.arange(2 * T) // 2),
        factors=np.zeros((2 * T, 2), np.float32),
    )
    (_, a), (_, b) = data.split(seed=7), data.split(seed=3)
    assert (len(a), len(b)) == (2, 2)
    assert rows(a) != rows(b)
    assert a.source == {"by": "split", "part": "test", "test": 0.1, "seed": 7, "of": data.source}


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 7.0])
def test_split_share(share):
    with pytest.raises(DataError, match="between 0 and 1"):
        small().split(share)


@settings(deadline=None, max_examples=50)
@given(st.lists(data_sets(max_episodes=3), min_size=1, max_size=3))
def test_concatenate(parts):
    whole = Transitions.concatenate(parts)
    assert rows(whole) == [row for part in parts for row in rows(part)]
    before = [(k, e) for k, part in enumerate(parts) for e in part.episode[part.i].tolist()]
    after = whole.episode[whole.i].tolist()
    assert len(set(before)) == len(set(after)) == len(set(zip(before, after, strict=True)))
    assert set(whole.i) | set(whole.j) == set(range(len(whole.frames)))  # unused frames are not carried along


def test_concatenate_split_parts_is_the_whole_again():
    data = small()
    whole = Transitions.concatenate(data.split())
    assert sorted(rows(whole)) == sorted(rows(data))
    assert len(whole.frames) == len(data.frames)


def test_concatenate_without_factors():
    bare = small(factors=None, factor_names=(), controllable=())
    assert Transitions.concatenate([bare, bare]).factors is None


UNLIKE = {
    "noop": small(noop=1),
    "action_names": small(action_names=("stay", "up", "down")),
    "frame_shape": small(frames=painted(7, (32, 32, 3))),
    "factor_names": small(factors=None, factor_names=(), controllable=()),
    "controllable": small(controllable=(True, True)),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_concatenate_wants_parts_alike(name):
    with pytest.raises(DataError, match=rf"concatenate: expected {name} .*as in part 0, found .* in part 1"):
        Transitions.concatenate([small(), UNLIKE[name]])


def test_concatenate_nothing():
    with pytest.raises(DataError, match="at least one part"):
        Transitions.concatenate([])


# from_arrays


def test_from_arrays_shares_frames_within_an_episode():
    world = painted(7)
    x, x_next = world[[0, 1, 2, 4, 5]], world[[1, 2, 3, 5, 6]]
    data = Transitions.from_arrays(x, [0, 1, 2, 1, 2], x_next, noop=0, episode=[3, 3, 3, 5, 5])
    np.testing.assert_array_equal(data.frames, world)
    assert data.i.tolist() == [0, 1, 2, 4, 5]
    assert data.j.tolist() == [1, 2, 3, 5, 6]
    assert data.episode.tolist() == [3, 3, 3, 3, 5, 5, 5]
    assert data.action_names == ("0", "1", "2")


def test_from_arrays_without_a_noop():
    data = Transitions.from_arrays(painted(2), [0, 1], painted(2)[::-1], noop=None)
    assert data.noop is None


def test_from_arrays_takes_lists_of_frames(monkeypatch):
    monkeypatch.setattr(checks, "BLOCK_BYTES", 2 * 16 * 18 * 3)  # several blocks
    world = [*painted(7)]
    x, x_next = [world[t] for t in (0, 1, 2, 4, 5)], [world[t] for t in (1, 2, 3, 5, 6)]
    rows = {"a": [0, 1, 2, 1, 2], "noop": 0, "episode": [3, 3, 3, 5, 5]}
    listed = Transitions.from_arrays(x, x_next=x_next, **rows)
    np.testing.assert_array_equal(listed.frames, painted(7))
    assert listed.i.tolist() == [0, 1, 2, 4, 5]


def test_from_arrays_shares_only_what_is_equal():
    world = painted(6)
    x, x_next = world[[0, 1, 3, 4]], world[[1, 2, 4, 5]]
    x_next[2, 15, 17, 2] ^= 1  # one bit in the last pixel: not the frame the next row starts from
    data = Transitions.from_arrays(x, [0, 1, 1, 0], x_next, noop=0, episode=[0, 0, 0, 0])
    assert data.i.tolist() == [0, 1, 3, 5]
    assert data.j.tolist() == [1, 2, 4, 6]
    np.testing.assert_array_equal(data.frames[data.i], x)
    np.testing.assert_array_equal(data.frames[data.j], x_next)


def test_from_arrays_without_episodes_shares_nothing():
    world = painted(3)
    data = Transitions.from_arrays(world[:2], [0, 1], world[1:], noop=0)
    assert (data.i.tolist(), data.j.tolist()) == ([0, 2], [1, 3])
    assert data.episode.tolist() == [0, 0, 1, 1]


def test_from_arrays_keeps_states_apart_that_look_alike():
    world = painted(3)
    factors, next_factors = np.array([[0.0], [9.0]]), np.array([[1.0], [2.0]])  # row 1 starts elsewhere
    data = Transitions.from_arrays(
        world[:2],
        np.array([0, 1]),
        world[1:],
        noop=0,
        episode=[0, 0],
        factors=factors,
        next_factors=next_factors,
        controllable=[True],
    )
    assert len(data.frames) == 4
    assert data.factors is not None
    assert data.factors.ravel().tolist() == [0, 1, 9, 2]
    assert (data.factor_names, data.controllable) == (("factor 0",), (True,))


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_from_arrays_gives_the_rows_back(data):
    T = data.draw(st.integers(2, 8))
    numbers = st.lists(st.integers(0, 2), min_size=T, max_size=T)
    x, x_next = (painted(3)[data.draw(numbers)] for _ in range(2))
    s, s_next = (np.array([data.draw(numbers)], np.float32).T for _ in range(2))
    episode = np.array(data.draw(numbers))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acf.data.transitions.warn_about_actions", lambda data: None)
        patch.setattr(checks, "BLOCK_BYTES", 3 * x[0].nbytes)
        made = Transitions.from_arrays(x, np.arange(T), x_next, noop=0, episode=episode, factors=s, next_factors=s_next)
    assert made.factors is not None
    for of_frame, now, after in [(made.frames, x, x_next), (made.factors, s, s_next), (made.episode, episode, episode)]:
        np.testing.assert_array_equal(of_frame[made.i], now)
        np.testing.assert_array_equal(of_frame[made.j], after)
    shared = [
        episode[t] == episode[t + 1] and (x_next[t] == x[t + 1]).all() and s_next[t] == s[t + 1] for t in range(T - 1)
    ]
    assert len(made.frames) == 2 * T - sum(map(bool, shared))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": painted(2) / np.float32(255)}, r"x: expected uint8\[T.*found float32.*np.round\(255 \* x\).astype"),
        ({"x": [*painted(2) / 255]}, r"x: expected uint8\[T.*found float64.*np.round\(255 \* x\).astype"),
        ({"x": painted(2)[..., 0]}, r"x: expected uint8.*found uint8\[2, 16, 18\]; gray .*x\[..., None\]"),
        ({"x": [*painted(2)[..., 0]]}, r"x: expected uint8.*; gray .*x\[..., None\]"),
        ({"x": np.array([{"image": 0}, {}])}, r"x: .*found object\[2\]; .*dictionaries .*\[o\['image'\] for o in x\]"),
        ({"x": [{"image": 0}, {}]}, r"x: .*found object\[1\]; .*dictionaries .*\[o\['image'\] for o in x\]"),
        ({"x": painted(2)[:, None]}, "x: .*found uint8.*; a stack of pictures goes into the channels"),
        ({"x": painted(2, (4, 84, 84))}, r"found 4 x 84; channels come last.*np.moveaxis\(frames, 1, -1\)"),
        ({"x": painted(2, (12, 84, 84))}, r"found 12 x 84; channels come last.*np.moveaxis\(frames, 1, -1\)"),
        ({"x": painted(2, (84, 84, 12))}, "1 to 4 channels.*found 12; of stacked pictures in colour make gray ones"),
        (
            {"x": [painted(2)[0], painted(2)[0, :, :16]]},
            r"x\[1\]: expected uint8\[16, 18, 3\] as in x\[0\], found uint8",
        ),
        ({"x_next": painted(3)}, r"x_next: expected uint8\[2, 16, 18, 3\], found uint8\[3,"),
        ({"a": [0.0, 1.0]}, r"a: expected integers of shape \(2,\), found float64 .*; actions are discrete, .* number"),
        ({"a": [[0, 1], [1, 0]]}, r"a: .*found int64 of \(2, 2\); actions are discrete, one number a step"),
        ({"a": [0, 1, 1]}, r"a: expected integers of shape \(2,\), found int64 of \(3,\)"),
        ({"a": [0, -1]}, r"action_names: expected at least two actions"),
        ({"a": [2, -1]}, r"action\[1\]: .*found -1"),
        ({"noop": NOT_SAID}, r"noop: .*0 to 1, found 'nothing said'; .*`noop` \(`--noop`.*None where no action does"),
        ({"noop": 2}, "noop: .*0 to 1, found 2"),
        ({"episode": [0, 2**40]}, rf"episode\[1\]: .*int32.*found {2**40}"),
        ({"factors": np.zeros((2, 1))}, "next_factors: expected with factors, found None"),
        ({"next_factors": np.zeros((2, 1))}, "factors: expected with next_factors, found None"),
        ({"factors": np.zeros((2, 1)), "next_factors": np.zeros((2, 2))}, r"next_factors: expected float32\[2, 1\]"),
        ({"factors": np.full((2, 1), np.nan), "next_factors": np.zeros((2, 1))}, "factor 'factor 0' of frame 0"),
    ],
)
def test_from_arrays_refuses(changes, message):
    fields: dict = {"x": painted(2), "a": [0, 1], "x_next": painted(2)[::-1], "noop": 0}
    with pytest.raises(DataError, match=message):
        Transitions.from_arrays(**(fields | changes))


# Actions that teach nothing


def test_no_warning_where_all_is_well():
    warn_about_actions(small())


def test_warning_names_absent_and_idle_actions():
    data = small(action_names=("stay", "left", "right", "jump"), j=int32([1, 1, 3, 4, 6]))
    with pytest.warns(DataWarning, match=r"never occur: 'jump' \(3\); .*never change a frame: 'left' \(1\)$"):
        warn_about_actions(data)


def test_the_no_op_may_do_nothing_but_has_to_occur():
    warn_about_actions(small(j=int32([0, 2, 3, 5, 6])))
    with pytest.warns(DataWarning, match=r"never occur: 'stay' \(0\)$"):
        warn_about_actions(small(action=int32([1, 1, 2, 1, 2])))


def test_without_a_no_op_an_idle_action_may_be_it():
    with pytest.warns(
        DataWarning, match=r"never change a frame: 'stay' \(0\) \(is one of them the no-op\? noop=NUMBER"
    ):
        warn_about_actions(small(noop=None, j=int32([0, 2, 3, 5, 6])))


def test_from_arrays_warns():
    x = painted(2)
    with pytest.warns(DataWarning, match=r"never change a frame: '1' \(1\)"):
        Transitions.from_arrays(x, [0, 1], x, noop=0)


def test_warning_looks_at_a_bounded_sample_from_everywhere(monkeypatch):
    T = 5_000
    seen = []
    monkeypatch.setattr(checks, "rows_differ", lambda a, i, b, j: seen.extend(j.tolist()) or np.zeros(len(i), bool))
    data = small(
        frames=np.zeros((T, *SHAPE), np.uint8),
        i=int32(np.zeros(T)),
        j=int32(np.arange(T)),
        action=int32(np.ones(T)),
        episode=int32(np.zeros(T)),
        factors=np.zeros((T, 2), np.float32),
    )
    with pytest.warns(DataWarning, match="'left'"):
        warn_about_actions(data)
    assert len(set(seen)) == len(seen) == 2_000
    assert (min(seen), max(seen)) == (0, T - 1)


def walk(moves: dict[int, int], steps: int, noop: int | None) -> Transitions:
    """A bar that action a moves by moves[a] columns; the actions take turns."""
    action = np.arange(steps) % len(moves)
    place = np.cumsum([0, *(moves[int(a)] for a in action)]) % 16
    frames = np.zeros((steps + 1, 16, 16, 1), np.uint8)
    frames[np.arange(steps + 1), :, place] = 255
    i = int32(np.arange(steps))
    episode = int32(np.zeros(steps + 1))
    names = tuple(f"by {by}" for by in moves.values())
    return Transitions(frames, i, int32(action), i + 1, episode, action_names=names, noop=noop)


def test_a_noop_that_moves_the_picture_as_the_others_do_is_named_with_numbers():
    """Two of 16 columns change wherever the bar moves: 255 / 8 grey levels a pixel."""
    with pytest.warns(DataWarning) as said:
        warn_about_actions(walk({0: 1, 1: -1, 2: 2}, 300, noop=0))
    (message,) = map(str, (warning.message for warning in said))
    assert message.startswith(
        "the no-op 'by 1' (0) changes the picture by 31.88 grey levels a pixel, the other actions"
    )
    assert "by 31.88 ('by -1' 31.88, 'by 2' 31.88)" in message
    assert message.endswith("if it is no no-op, say so with noop=None (`--noop none`)")


def test_a_noop_is_not_doubted_where_it_does_nothing_or_there_is_none_or_too_little():
    warn_about_actions(walk({0: 0, 1: -1, 2: 2}, 300, noop=0))
    warn_about_actions(walk({0: 1, 1: -1, 2: 2}, 300, noop=None))
    warn_about_actions(walk({0: 1, 1: -1, 2: 2}, 140, noop=0))


# describe


def test_describe():
    factors = np.zeros((7, 2), np.float32)
    factors[3:, 0] = 1  # x changes in transition 2 (action "right") alone
    data = small(factors=factors, j=int32([0, 2, 3, 4, 6]), action_names=("stay", "left", "right", "jump"))
    found = describe(data)
    assert found["actions"] == {
        "stay": {"count": 1, "changed": 0.0, "factors": {"x": 0.0, "y": 0.0}},
        "left": {"count": 2, "changed": 0.5, "factors": {"x": 0.0, "y": 0.0}},
        "right": {"count": 2, "changed": 1.0, "factors": {"x": 0.5, "y": 0.0}},
        "jump": {"count": 0, "changed": None, "factors": {"x": None, "y": None}},
    }
    assert {k: found[k] for k in ("transitions", "frames", "episodes", "noop", "hash")} == {
        "transitions": 5,
        "frames": 7,
        "episodes": 2,
        "noop": "stay",
        "hash": None,
    }
    assert found["bytes"] == 7 * 16 * 18 * 3 + 3 * 5 * 4 + 7 * 4 + 7 * 2 * 4
    json.dumps(found)


def test_describe_in_blocks_and_without_factors(monkeypatch):
    data = replace(small(), factors=None, factor_names=(), controllable=())
    whole = describe(data)
    assert "factors" not in whole["actions"]["left"]
    monkeypatch.setattr(checks, "BLOCK_BYTES", 1)
    assert describe(data) == whole
