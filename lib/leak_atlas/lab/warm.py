"""Imports what workers need, before they are forked."""

from leak_atlas.lab.jobs import learn_kinds

learn_kinds()
