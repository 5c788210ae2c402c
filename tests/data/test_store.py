import errno
import hashlib
import json

import numpy as np
import pytest

from acf.data import checks, store
from acf.data.checks import DataError, DataWarning
from acf.data.describe import describe
from acf.data.store import Writer, content_hash, read
from acf.data.transitions import Transitions

SHAPE = (16, 16, 3)


def int32(values):
    return np.asarray(values, np.int32)


def small(**changes) -> Transitions:
    """Two episodes: frames 0-3 (three steps) and 4-6 (two steps); action 0 is the no-op."""
    fields: dict = {
        "frames": np.arange(7 * 16 * 16 * 3, dtype=np.uint32).reshape(7, *SHAPE).astype(np.uint8),
        "i": int32([0, 1, 2, 4, 5]),
        "action": int32([0, 1, 2, 1, 2]),
        "j": int32([1, 2, 3, 5, 6]),
        "episode": int32([0, 0, 0, 0, 1, 1, 1]),
        "action_names": ("stay", "left", "right"),
        "noop": 0,
        "factors": np.arange(14, dtype=np.float32).reshape(7, 2),
        "factor_names": ("x", "ÿ"),
        "controllable": (True, False),
        "source": {"domain": "hand-made"},
    }
    fields["frames"] += np.arange(7, dtype=np.uint8)[:, None, None, None]
    return Transitions(**(fields | changes))


ARRAYS = ("frames", "i", "action", "j", "episode", "factors")


@pytest.fixture
def saved(tmp_path):
    small().save(tmp_path / "data")
    return tmp_path / "data"


def names(path):
    return sorted(file.name for file in path.iterdir())


def edit_meta(path, change):
    meta = json.loads((path / "meta.json").read_text())
    change(meta)
    (path / "meta.json").write_text(json.dumps(meta))


def forge(path, name, array):
    """Puts another array in place, with hashes that agree: what a faulty program would write."""
    np.save(path / f"{name}.npy", array)
    sign(path, f"{name}.npy")


def sign(path, name):
    def change(meta):
        meta["sha256"][name] = hashlib.sha256((path / name).read_bytes()).hexdigest()
        meta["hash"] = content_hash(meta)

    edit_meta(path, change)


@pytest.mark.parametrize("verify", [True, False])
def test_round_trip(saved, verify):
    data, back = small(), Transitions.open(saved, verify=verify)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(back, name), getattr(data, name))
        assert getattr(back, name).dtype == getattr(data, name).dtype
    for name in ("action_names", "noop", "factor_names", "controllable", "source"):
        assert getattr(back, name) == getattr(data, name)
    assert isinstance(back.frames, np.memmap)
    assert isinstance(back.select([0]).frames, np.memmap)
    assert back.hash == json.loads((saved / "meta.json").read_text())["hash"] == describe(back)["hash"]
    assert back.select([0]).hash is None


def test_files_are_plain_numpy(saved):
    assert names(saved) == sorted([*(f"{name}.npy" for name in ARRAYS), "meta.json"])
    for name in ARRAYS:
        np.testing.assert_array_equal(np.load(saved / f"{name}.npy"), getattr(small(), name))
    meta = json.loads((saved / "meta.json").read_text())
    assert meta["counts"] == {"frames": 7, "transitions": 5, "episodes": 2, "actions": 3}
    assert (meta["format"], meta["kind"], meta["frame_shape"]) == (1, "acf-transitions", [16, 16, 3])


def test_round_trip_without_factors(tmp_path):
    small(factors=None, factor_names=(), controllable=()).save(tmp_path / "data")
    assert not (tmp_path / "data" / "factors.npy").exists()
    assert Transitions.open(tmp_path / "data").factors is None


def test_round_trip_without_a_noop(tmp_path):
    small(noop=None).save(tmp_path / "data")
    meta = json.loads((tmp_path / "data" / "meta.json").read_text())
    assert (meta["noop"], meta["format"]) == (None, 1)
    back = Transitions.open(tmp_path / "data")
    assert back.noop is describe(back)["noop"] is None
    assert Transitions.open(tmp_path / "data", noop=2).noop == 2  # found later


def test_hash_is_of_content_and_names_not_of_source(tmp_path):
    def saved_hash(name, **changes):
        small(**changes).save(tmp_path / name)
        return Transitions.open(tmp_path / name).hash

    assert saved_hash("a") == saved_hash("b", source={"other": 1})
    others = [
        saved_hash("c", noop=1),
        saved_hash("n", noop=None),
        saved_hash("d", action_names=("stay", "up", "down")),
        saved_hash("e", controllable=(True, True)),
        saved_hash("f", episode=int32([0, 0, 0, 0, 2, 2, 2])),
    ]
    assert len({saved_hash("g"), *others}) == 6


@pytest.mark.filterwarnings("ignore::acf.data.checks.DataWarning")
def test_save_writes_only_the_frames_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "BLOCK_BYTES", 2 * 16 * 16 * 3)  # several blocks
    data = small()
    data.select([4, 2, 1]).save(tmp_path / "data")
    back = Transitions.open(tmp_path / "data")
    assert back.frames.shape == (5, *SHAPE)
    assert (back.i.tolist(), back.j.tolist()) == ([3, 1, 0], [4, 2, 1])
    for name in ("frames", "episode", "factors"):
        np.testing.assert_array_equal(getattr(back, name), getattr(data, name)[[1, 2, 3, 5, 6]])
    back.save(tmp_path / "again")  # from a memory map
    assert Transitions.open(tmp_path / "again").hash == back.hash


def test_open_warns_about_actions(tmp_path):
    small(action=int32([0, 1, 1, 1, 1])).save(tmp_path / "data")
    with pytest.warns(DataWarning, match=r"never occur: 'right' \(2\)"):
        Transitions.open(tmp_path / "data")


def test_save_never_overwrites(saved):
    before = (saved / "meta.json").read_bytes()
    with pytest.raises(FileExistsError, match="already exists"):
        small(noop=1).save(saved)
    assert (saved / "meta.json").read_bytes() == before


# Writer


def writer(path, **changes) -> Writer:
    fields: dict = {"action_names": ("stay", "left", "right"), "noop": 0}
    fields |= {"factor_names": ("x", "ÿ"), "controllable": (True, False), "source": {}}
    fields |= {"frame_shape": SHAPE}
    return Writer(path, **(fields | changes))


def block(frames: slice, transitions: slice) -> tuple:
    d = small()
    assert d.factors is not None
    t = transitions
    return d.frames[frames], d.i[t], d.action[t], d.j[t], d.episode[frames], d.factors[frames]


FIRST, SECOND = block(slice(0, 4), slice(0, 3)), block(slice(4, 7), slice(3, 5))


def test_writer_in_blocks_equals_save(tmp_path, saved):
    with writer(tmp_path / "blocks", source={"domain": "hand-made"}) as w:
        w.append(*FIRST)
        assert not (tmp_path / "blocks").exists()
        w.append(*SECOND)
    for name in names(saved):
        assert (saved / name).read_bytes() == (tmp_path / "blocks" / name).read_bytes()


def test_writer_takes_arrays_in_any_layout(tmp_path, saved):
    frames, i, action, j, episode, factors = block(slice(None), slice(None))
    with writer(tmp_path / "layout") as w:
        w.append(np.asfortranarray(frames), i, action, j, np.repeat(episode, 2)[::2], np.asfortranarray(factors))
    assert read(tmp_path / "layout").hash == read(saved).hash


def change(part, k, value):
    return (*part[:k], value, *part[k + 1 :])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "i: expected at least one transition, found none"),
        ([change(change(change(FIRST, 1, int32([])), 2, int32([])), 3, int32([]))], "at least one transition"),
        (
            [change(FIRST, 0, FIRST[0][:, :, :, :1])],
            r"frames: expected uint8\[4, 16, 16, 3\], found uint8\[4, 16, 16, 1",
        ),
        ([change(FIRST, 0, FIRST[0].astype(np.float32))], r"frames: expected uint8.*found float32"),
        ([change(FIRST, 0, None)], r"frames: expected a numpy array uint8\[n, 16, 16, 3\], found NoneType"),
        ([change(FIRST, 1, np.arange(3))], r"i: expected int32\[3\], found int64"),
        ([change(FIRST, 3, int32([1]))], r"j: expected int32\[3\], found int32\[1\]"),
        ([change(FIRST, 4, int32([1]))], r"episode: expected int32\[4\], found int32\[1\]"),
        ([change(FIRST, 5, None)], r"factors: expected values for factor_names .*'x'.*found NoneType"),
        ([FIRST, change(SECOND, 3, int32([5, 9]))], r"data: j\[4\]: expected the index of a frame, 0 to 6, found 9"),
        ([FIRST, change(SECOND, 3, int32([5, 3]))], r"data: transition 4: .*i=5 of episode 1 .*j=3 of episode 0"),
        ([FIRST, change(SECOND, 2, int32([5, 1]))], r"data: action\[3\]"),
        ([FIRST, change(SECOND, 5, np.full((3, 2), np.nan, np.float32))], r"factors\[4, 0\]: .*nan for factor 'x'"),
    ],
)
def test_writer_refuses_and_leaves_nothing(tmp_path, parts, message):
    with pytest.raises(DataError, match=message), writer(tmp_path / "data") as w:
        for part in parts:
            w.append(*part)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frame_shape": (8, 8, 3)}, "at least 16 pixels, found 8 x 8"),
        ({"frame_shape": (3, 32, 32)}, r"at least 16 pixels, found 3 x 32; channels come last, \(H, W, C\)"),
        ({"frame_shape": (32, 32)}, r"frames of shape \(H, W, C\), found \(32, 32\)"),
        ({"noop": 3}, "--noop"),
        ({"action_names": ("stay",)}, "at least two actions"),
        ({"controllable": (True,)}, "controllable"),
        ({"source": {"a": {1, 2}}}, "source"),
    ],
)
def test_writer_says_what_is_wrong_before_the_work(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        writer(tmp_path / "data", **changes)


def test_writer_without_factors_takes_none(tmp_path):
    with pytest.raises(DataError, match="factors"), writer(tmp_path / "d", factor_names=(), controllable=()) as w:
        w.append(*FIRST)


# A write that fails half-way

FAILURES = [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]


@pytest.mark.parametrize("error", FAILURES, ids=repr)
@pytest.mark.parametrize("after", range(0, 19, 3))
def test_failed_write_leaves_nothing(tmp_path, monkeypatch, error, after):
    monkeypatch.setattr(checks, "BLOCK_BYTES", 2 * 16 * 16 * 3)
    write, calls = store._NpyFile._write, []

    def fails(self, data):
        calls.append(len(data))
        if len(calls) > after:
            raise error
        write(self, data)

    monkeypatch.setattr(store._NpyFile, "_write", fails)
    with pytest.raises(type(error)):
        small().save(tmp_path / "data")
    assert len(calls) == after + 1
    assert names(tmp_path) == []


@pytest.mark.parametrize("error", FAILURES, ids=repr)
@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.rename", "acf.data.store.write_atomic"])
def test_failed_ending_leaves_nothing(tmp_path, monkeypatch, error, step):
    def fails(*args):
        raise error

    monkeypatch.setattr(step, fails)
    with pytest.raises(type(error)):
        small().save(tmp_path / "data")
    monkeypatch.undo()
    assert names(tmp_path) == []


def test_interrupted_collector_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), writer(tmp_path / "data") as w:
        w.append(*FIRST)
        raise KeyboardInterrupt
    assert names(tmp_path) == []


# Data sets that are not what they say


def put(key, value):
    return lambda meta: meta.__setitem__(key, value)


def put_count(key, value):
    return lambda meta: meta["counts"].__setitem__(key, value)


META = {
    "future format": (put("format", 7), "format 7 was written by a newer acf-rl; this one reads up to 1; upgrade"),
    "format 0": (put("format", 0), "expected format to be a whole number from 1, found 0"),
    "format a string": (put("format", "1"), "expected format to be a whole number from 1, found '1'"),
    "other kind": (put("kind", "acf-run"), "not a data set directory: expected kind 'acf-transitions'.*'acf-run'"),
    "no counts": (lambda meta: meta.pop("counts"), "expected counts to be a dict, found None"),
    "names a string": (put("action_names", "abc"), "expected action_names to be a list, found 'abc'"),
    "no noop": (lambda meta: meta.pop("noop"), "noop: .*found 'nothing said'.*--noop"),
    "none for a noop": (put("noop", None), "meta.json: content changed: expected hash"),
    "noop too high": (put("noop", 3), "noop: .*found 3.*--noop"),
    "one action": (put("action_names", ["stay"]), "at least two actions"),
    "actions counted wrong": (put_count("actions", 4), "expected 4 action_names as in counts.actions, found 3"),
    "frames counted wrong": (
        put_count("frames", 8),
        r"frames.npy: expected uint8\[8, 16, 16, 3\] as in meta.json, found uint8\[7, 16, 16, 3\]",
    ),
    "transitions counted wrong": (
        put_count("transitions", 4),
        r"i.npy: expected int32\[4\] as in meta.json, found int32\[5\]",
    ),
    "episodes counted wrong": (put_count("episodes", 3), "episode.npy: expected 3 episodes as in meta.json, found 2"),
    "count not a number": (put_count("frames", "7"), "expected counts.frames to be a whole number from 1, found '7'"),
    "other frame shape": (put("frame_shape", [32, 32, 3]), r"frames.npy: expected uint8\[7, 32, 32, 3\].*16, 16, 3\]"),
    "tiny frame shape": (put("frame_shape", [8, 8, 3]), "at least 16 pixels, found 8 x 8"),
    "frame shape text": (
        put("frame_shape", ["a", 8, 3]),
        "expected frame_shape to be a whole number from 1, found 'a'",
    ),
    "fewer factors": (
        lambda meta: meta.update(factor_names=["x"], controllable=[True]),
        r"factors.npy: expected float32\[7, 1\] as in meta.json, found float32\[7, 2\]",
    ),
    "renamed action": (put("action_names", ["a", "b", "c"]), "meta.json: content changed: expected hash"),
    "other noop": (put("noop", 1), "meta.json: content changed: expected hash"),
    "other sha256": (
        lambda meta: meta["sha256"].__setitem__("i.npy", "0"),
        "i.npy: content changed: expected sha256 0 .*found [0-9a-f]{64}",
    ),
}


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(("edit", "message"), META.values(), ids=META.keys())
def test_meta_that_disagrees(saved, edit, message, verify):
    edit_meta(saved, edit)
    with pytest.raises(DataError, match=f"data: .*{message}"):
        Transitions.open(saved, verify=verify)


FORGED = {
    "wide index": ("i", np.arange(5), r"i.npy: expected int32\[5\] as in meta.json, found int64\[5\]"),
    "float frames": ("frames", np.zeros((7, *SHAPE), np.float32), r"frames.npy: expected uint8.*found float32"),
    "short action": ("action", int32([0, 1]), r"action.npy: expected int32\[5\] .*found int32\[2\]"),
    "Fortran order": ("factors", np.zeros((7, 2), np.float32, order="F"), "factors.npy: .*Fortran"),
    "index out of range": ("j", int32([1, 2, 3, 5, 7]), r"j\[4\]: expected the index of a frame, 0 to 6, found 7"),
    "across episodes": ("j", int32([1, 2, 4, 5, 6]), "transition 2: .*i=2 of episode 0 and frame j=4 of episode 1"),
    "unknown action": ("action", int32([0, 1, 2, 1, 3]), r"action\[4\]: .*0 to 2, found 3"),
    "NaN": ("factors", np.full((7, 2), np.nan, np.float32), r"factors\[0, 0\]: .*nan for factor 'x' of frame 0"),
}


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(("name", "array", "message"), FORGED.values(), ids=FORGED.keys())
def test_arrays_that_break_the_contract(saved, name, array, message, verify):
    forge(saved, name, array)
    with pytest.raises(DataError, match=f"data: {message}"):
        Transitions.open(saved, verify=verify)


def test_no_pickle(saved):
    np.save(saved / "i.npy", np.array([{}] * 5, object), allow_pickle=True)
    sign(saved, "i.npy")
    with pytest.raises(DataError, match=r"i.npy: expected int32\[5\] .*found object"):
        Transitions.open(saved)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("name", ARRAYS)
def test_truncated_missing_and_foreign_files(saved, name, verify):
    file = saved / f"{name}.npy"
    content = file.read_bytes()
    for data, message in [
        (content[:-1], f"truncated file: expected {len(content)} bytes, found {len(content) - 1}"),
        (content[:40], "expected a whole .npy file"),
        (b"", "expected a whole .npy file"),
        (b"PK\x03\x04" + bytes(200), "expected a whole .npy file"),
        (content + b"\0", f"bytes behind the data: expected {len(content)} bytes, found {len(content) + 1}"),
    ]:
        file.write_bytes(data)
        with pytest.raises(DataError, match=f"data: {name}.npy: {message}"):
            Transitions.open(saved, verify=verify)
    file.unlink()
    with pytest.raises(DataError, match=f"data: {name}.npy: expected .*found no such file"):
        Transitions.open(saved, verify=verify)


@pytest.mark.parametrize("name", ARRAYS)
def test_flipped_bit(saved, name):
    content = bytearray((saved / f"{name}.npy").read_bytes())
    content[-1] ^= 1
    (saved / f"{name}.npy").write_bytes(content)
    with pytest.raises(DataError, match=f"{name}.npy: content changed: expected sha256"):
        Transitions.open(saved)
    if name == "frames":
        Transitions.open(saved, verify=False)  # the one check that may be skipped
    else:
        with pytest.raises(DataError, match="content changed"):
            Transitions.open(saved, verify=False)


def test_not_a_data_set(tmp_path, saved):
    with pytest.raises(DataError, match=r"nowhere: not a data set: .*nothing there"):
        Transitions.open(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"i.npy: not a data set: .*found a file"):
        Transitions.open(saved / "i.npy")
    with pytest.raises(DataError, match=r"not a data set directory: expected a meta.json"):
        Transitions.open(tmp_path)


@pytest.mark.parametrize("content", [b"{", b"", b"\xff\xfe\x00", b'{"format": 1,}'])
def test_meta_not_json(saved, content):
    (saved / "meta.json").write_bytes(content)
    with pytest.raises(DataError, match=r"data: meta.json: expected JSON"):
        Transitions.open(saved)


def test_meta_not_an_object(saved):
    (saved / "meta.json").write_text("[1]")
    with pytest.raises(DataError, match=r"not a data set directory: expected kind"):
        Transitions.open(saved)


def test_noop_stands_in_for_what_the_data_says(saved):
    before = Transitions.open(saved)
    assert before.noop == 0
    assert Transitions.open(saved, noop=1).noop == 1
    with pytest.raises(DataError, match=r"noop: .*found 9.*--noop"):
        Transitions.open(saved, noop=9)
