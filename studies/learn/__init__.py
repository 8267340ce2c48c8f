"""Estimators with scikit-learn's interface: what is private is protected before anything is learned from it."""

from studies.learn.preferences import PreferenceClassifier
from studies.learn.records import HeavyTailedRegressor

__all__ = ["HeavyTailedRegressor", "PreferenceClassifier"]
