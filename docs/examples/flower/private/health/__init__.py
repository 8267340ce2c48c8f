"""An ordinary Flower app: logistic regression over hospitals, whose rows stay where they are."""
