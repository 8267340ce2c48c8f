"""Studies of real files: what privacy costs where nobody drew the labels. `python -m studies.real FOLDER`."""
