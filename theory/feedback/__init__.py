"""Error feedback: where the correction provably helps, and where it hurts.

Theorem 2 (theory.lmo.error_feedback) has the drift dbar in place of the delay tau, and dbar can be 2 tau. These modules
bound the drift by what the optimizer measures, for update rules where that is possible:

    linear        linear EMA updates, any L-smooth f, any tau, both forms: the bias is of second order in L eta
    noise         the same with white noise alone, exact: which momentum makes the correction smaller than the delay
    normalised    normalised SGD: the drift is at most 2 a |g - m|/(|m| + |m'|)
    polar         Muon: the same with the smallest singular values
    far           both, with nothing measured but the momentum's length: small drift far from the floor L eta
    sign_flips    sign descent with coordinate smoothness: the share of curvature whose sign flips
    at_weights    the gradient at the weights without the return term
    worst_case    one dimension, no momentum: strictly worse than no correction

On quadratics theory.quadratic has equalities: the slow root (the correction removes tau h^2) and Theorem V.
"""
