"""Attacks that turn arrays into one score per sample; **larger means more likely member**,
everywhere.

N samples, M shadow models, A query augmentations, C classes. A target's signals are ``(N,)`` or
``(N, A)``, its shadow models' ``(M, N)`` or ``(M, N, A)``, the shadow models' membership ``(M, N)``
Boolean, and a result is ``(N,)`` float64. No attack reads the target's own membership.

The number of shadow models that trained on a sample must not depend on the target's membership. So
where the target comes from the same fixed-half design, its whole complement pair is left out.
"""
