//! Decentralised identities and what is signed with them. Knows no routes.

pub mod did_key;
pub mod jwk;
pub mod proof;
pub mod seal;
pub mod submission;
