"""Kinds of fault that people have met, and their repairs: one variant a file, as beside this folder."""
