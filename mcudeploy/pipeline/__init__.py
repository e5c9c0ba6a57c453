"""Pipelines over a topology of compute units: an operator graph in regions, one behind the other; see
docs/pipeline.md. The units share nothing but links. Everything is modelled; no firmware is made.
"""
