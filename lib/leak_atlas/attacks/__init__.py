"""Attacks that turn arrays into one score per sample; **larger means more likely member**,
everywhere.

N samples, M shadow models, A query augmentations, C classes. A target's signals are ``(N,)`` or
``(N, A)``, its shadows' ``(M, N)`` or ``(M, N, A)``, the shadows' membership ``(M, N)`` Boolean,
and a result is ``(N,)`` float64. No attack is told the target's own membership.

Shadows must have been drawn so that their number of members per sample says nothing about the
target: where the target comes from the same fixed-half design, its whole complement pair has to
leave.
"""
