"""One function a verb: REST, kubectl, observers and webhooks meet here to validate, default and store."""
