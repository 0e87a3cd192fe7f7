//! What must hold for all inputs.

mod fuzz;
mod properties;
