"""Estimators with scikit-learn's interface: a label is randomised by its labeler before anything is learned."""

from studies.learn.preferences import PreferenceClassifier

__all__ = ["PreferenceClassifier"]
