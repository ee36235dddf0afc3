//! Who may ask what, from the caller's side: hosts, origins, keys, scopes, and the routes that
//! change them.

#[path = "../support/mod.rs"]
mod support;

mod doors;
mod enrolment;
mod events;
mod keys;
mod plane;
mod session;
mod site;
