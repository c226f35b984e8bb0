//! `exact`: the same policies solved numerically instead of simulated.
