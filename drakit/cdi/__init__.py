"""Container Device Interface specs: model, minimum version, validation, store, resolver."""
