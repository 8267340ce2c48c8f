"""Where labels live. Nothing under `client/` may reach the server except through `client.labeler.answer`."""
