//! The built program, used as a person would: arguments in; stdout, stderr, exit codes and files out.
#![expect(clippy::disallowed_methods, reason = "tests start the program under test")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what cannot go on in a test has failed it"
)]

mod audit;
mod builds;
mod call;
mod cases;
mod company;
mod confined;
mod credentials;
mod doctor;
mod edit;
mod enforcer;
mod environment;
mod environments;
mod foreign;
mod golden;
mod help;
mod interrupt;
mod layers;
mod limited;
mod names;
mod output;
mod peers;
mod person;
mod proposed;
mod provider;
mod reference;
mod rungs;
mod sandbox;
mod servers;
mod sign_in;
mod support;
mod survivors;
mod trouble;
mod trust;
