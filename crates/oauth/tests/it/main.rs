//! Flows against a fake authorization server that is a function.
