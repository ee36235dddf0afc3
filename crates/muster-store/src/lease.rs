//! The deciding lease: who may commit. One lease today; its id is here so that a second
//! decider can come.

/// Which lease. 0 is the only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LeaseId(pub u32);

/// A lease that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lease {
    /// Which.
    pub id: LeaseId,
    /// Higher than every earlier taker's. Commits under an older one are refused.
    pub epoch: u64,
}
