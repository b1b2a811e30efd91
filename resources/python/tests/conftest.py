"""Tiny models are faster on one thread than on many that wait for each other."""

import torch

torch.set_num_threads(1)
