"""Integer noise that many add in shares: its laws, by name, and what a sum with it costs."""

from protocol.noise import binomial, discrete_gaussian, skellam
from protocol.noise.law import Law

LAWS: dict[str, Law] = {law.name: law for law in (skellam.LAW, discrete_gaussian.LAW, binomial.LAW)}
