//! Whether the plane lives, and whether it serves. Two judgements from the driver's signs, each
//! one function; and the duties that watch the other duties.

pub(crate) mod duty;
mod watch;

use std::time::Duration;

use muster_wire::Timestamp;

use crate::app::LifePhase;
use crate::driver::Vitals;

pub(crate) use watch::start_duties;

/// A driver that has something to do and has not turned for so long is stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(30);
/// A plane in which a commit has waited for so long does not serve.
pub const WAITED_MAX: Duration = Duration::from_secs(10);

/// Why a plane should be restarted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dead {
    /// The driver has ended: nobody decides.
    Gone,
    /// The driver has something to do and does not turn.
    Stuck(Duration),
}

/// Why a plane should be sent no work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotReady {
    /// It reads its store.
    Starting,
    /// It was told to stop.
    Leaving,
    /// A commit has waited for so long.
    Waiting(Duration),
    /// It is not even alive.
    Dead(Dead),
}

/// Whether the driver is stuck. An idle one is not.
pub fn liveness(vitals: &Vitals, phase: LifePhase, now: Timestamp) -> Result<(), Dead> {
    if phase == LifePhase::Starting {
        return Ok(());
    }
    if vitals.gone {
        return if phase >= LifePhase::Draining {
            Ok(())
        } else {
            Err(Dead::Gone)
        };
    }
    let still = now.since(vitals.turned_at);
    if vitals.busy && still > STUCK_AFTER {
        return Err(Dead::Stuck(still));
    }
    Ok(())
}

/// Whether work that comes in is committed soon. An idle plane is ready.
pub fn readiness(vitals: &Vitals, phase: LifePhase, now: Timestamp) -> Result<(), NotReady> {
    match phase {
        LifePhase::Starting => return Err(NotReady::Starting),
        LifePhase::Leaving | LifePhase::Draining => return Err(NotReady::Leaving),
        LifePhase::Serving => {}
    }
    liveness(vitals, phase, now).map_err(NotReady::Dead)?;
    let waited = vitals
        .committing_since
        .map_or(Duration::ZERO, |since| now.since(since));
    if waited > WAITED_MAX {
        return Err(NotReady::Waiting(waited));
    }
    Ok(())
}

impl std::fmt::Display for Dead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dead::Gone => f.write_str("nobody decides here any more; the plane's log says why"),
            Dead::Stuck(still) => write!(
                f,
                "the driver has something to do and has not turned for {} s",
                still.as_secs()
            ),
        }
    }
}

impl std::fmt::Display for NotReady {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotReady::Starting => f.write_str("the plane is starting"),
            NotReady::Leaving => f.write_str("the plane is shutting down"),
            NotReady::Waiting(waited) => {
                write!(f, "a commit has waited for {} s", waited.as_secs())
            }
            NotReady::Dead(dead) => dead.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vitals() -> Vitals {
        Vitals {
            turned_at: Timestamp(0),
            busy: false,
            committing_since: None,
            last_seq: 0,
            restored: 0,
            quarantined: 0,
            depths: [0; 4],
            waiters: 0,
            gone: false,
        }
    }

    const LATER: Timestamp = Timestamp(3_600_000_000);

    #[test]
    fn an_idle_plane_lives_and_is_ready_however_long_it_is_idle() {
        assert_eq!(liveness(&vitals(), LifePhase::Serving, LATER), Ok(()));
        assert_eq!(readiness(&vitals(), LifePhase::Serving, LATER), Ok(()));
    }

    #[test]
    fn a_driver_with_something_to_do_that_does_not_turn_is_stuck_after_thirty_seconds() {
        let mut vitals = vitals();
        vitals.busy = true;
        vitals.turned_at = LATER - STUCK_AFTER;
        assert_eq!(liveness(&vitals, LifePhase::Serving, LATER), Ok(()));
        vitals.turned_at = LATER - (STUCK_AFTER + Duration::from_secs(1));
        assert!(matches!(
            liveness(&vitals, LifePhase::Serving, LATER),
            Err(Dead::Stuck(_))
        ));
        assert!(matches!(
            readiness(&vitals, LifePhase::Serving, LATER),
            Err(NotReady::Dead(_))
        ));
    }

    #[test]
    fn a_commit_that_waits_ten_seconds_ends_readiness_and_not_life() {
        let mut vitals = vitals();
        vitals.busy = true;
        vitals.turned_at = LATER;
        vitals.committing_since = Some(LATER - Duration::from_secs(11));
        assert_eq!(liveness(&vitals, LifePhase::Serving, LATER), Ok(()));
        assert!(matches!(
            readiness(&vitals, LifePhase::Serving, LATER),
            Err(NotReady::Waiting(_))
        ));
    }

    #[test]
    fn starting_and_leaving_are_not_ready_and_live() {
        for phase in [LifePhase::Starting, LifePhase::Leaving, LifePhase::Draining] {
            assert_eq!(liveness(&vitals(), phase, LATER), Ok(()));
            assert!(readiness(&vitals(), phase, LATER).is_err());
        }
        let gone = Vitals {
            gone: true,
            ..vitals()
        };
        assert_eq!(liveness(&gone, LifePhase::Serving, LATER), Err(Dead::Gone));
    }
}
