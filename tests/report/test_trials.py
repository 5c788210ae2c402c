import numpy as np

from acf.report.trials import Trial, draw_trials

TRIALS = [
    Trial(2, "complete", 8, 0.5, (0.4, 0.6), {"lr": 1e-3, "noise": 0.2}),
    Trial(0, "complete", 8, 0.25, (0.2, 0.3), {"lr": 3e-2, "noise": 0.0}),  # outside of the range
    Trial(1, "pruned", 2, 0.1, (0.1, 0.1), {"lr": 1e-4, "noise": 0.1}),
    Trial(3, "diverged", 8, None, (None, 0.7), {"lr": 1e-2, "noise": 0.3}),
]


def test_every_sample_is_in_the_table_and_on_the_picture():
    ranges = {"lr": (1e-4, 1e-2), "noise": (0.0, 0.5)}
    drawing = draw_trials(TRIALS, seeds=[7, 8], ranges=ranges, objective="agreement", best=2)
    lines = drawing.csv().splitlines()
    assert lines[0] == "sample,state,epochs,objective,seed 7,seed 8,lr,noise"
    assert lines[1:3] == ["0,complete,8,0.25,0.2,0.3,0.03,0.0", "1,pruned,2,0.1,0.1,0.1,0.0001,0.1"]
    assert lines[4] == "3,diverged,8,,,0.7,0.01,0.3"
    left, right = drawing.figure.axes
    for axes, name in ((left, "lr"), (right, "noise")):
        points = {tuple(np.asarray(line.get_xydata())[0]) for line in axes.lines}
        assert points == {(trial.hparams[name], trial.objective) for trial in TRIALS[:3]}
    assert (left.get_xscale(), right.get_xscale()) == ("log", "linear")
    assert left.get_xlim() == (1e-4, 3e-2)
    shown = {text.get_text() for text in drawing.figure.legends[0].get_texts()}
    assert shown == {"the best", "the preset", "stopped early"}
    assert drawing.png.startswith(b"\x89PNG")


def test_one_range_and_no_winner():
    trials = [Trial(1, "diverged", 8, None, (None,), {"lr": 1e-2})]
    drawing = draw_trials(trials, seeds=[0], ranges={"lr": (1e-4, 1e-2)}, objective="loss", best=None)
    assert not drawing.figure.legends
    assert drawing.png
