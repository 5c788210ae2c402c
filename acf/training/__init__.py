"""Training populations into run directories, and loading what came out."""

from acf.training.run_dir import RunDir, Trained, load
from acf.training.train import train

__all__ = ["RunDir", "Trained", "load", "train"]
