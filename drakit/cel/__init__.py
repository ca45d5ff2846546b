"""The CEL dialect of DRA device selectors: parse, check, cost, compile, evaluate."""
