"""Exact counts of executed instructions from the emulator, and cycles modelled from them.

`counts.c` is a plugin for QEMU with a licence of its own, see there; it is compiled at need by `plugin.py`.
"""
