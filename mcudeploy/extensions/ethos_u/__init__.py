"""Arm Ethos-U55 beside the core: convolutions and dense layers as command streams of the unit."""
