//! What must hold for all inputs.

mod properties;
