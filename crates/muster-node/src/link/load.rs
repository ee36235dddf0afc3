//! How busy the machine is. Knows nothing of workers.

/// 0..1: the load of the last minute over the number of cores; `None` when nothing tells it.
pub(crate) fn of_this_machine() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split(' ').next()?.parse().ok()?;
    let cores = std::thread::available_parallelism().ok()?.get();
    let share = load / f64::from(u32::try_from(cores).ok()?);
    // Two digits: a beat is no place for noise.
    Some((share.clamp(0.0, 1.0) * 100.0).round() / 100.0)
}
