"""Collects the covariance of the inputs of every matrix of a checkpoint, ``python3 -m ggufmill.calibrate``, and encodes a
checkpoint block by block, ``python3 -m ggufmill.calibrate.encode``.

The only part of ggufmill that uses torch and transformers, which the extra ``calibrate`` of the wheel installs. Nothing
here is imported by ``import ggufmill``.
"""
