//! Who holds an end, as Python sees it.

use pyo3::prelude::*;
use relay_accel_core::memory::process::Liveness;
use relay_accel_core::ring::EndState;

/// `(state, pid)`: `vacant`, `left`, `alive`, `dead` or `unknown`; the pid is 0 where nobody holds it.
pub(crate) fn described(state: EndState) -> (&'static str, u32) {
    match state {
        EndState::Vacant => ("vacant", 0),
        EndState::Left => ("left", 0),
        EndState::Held(owner, Liveness::Alive) => ("alive", owner.pid()),
        EndState::Held(owner, Liveness::Dead) => ("dead", owner.pid()),
        EndState::Held(owner, Liveness::Unknown) => ("unknown", owner.pid()),
    }
}

/// A time-out in seconds; `None` waits as long as Python's own waits do in one go.
pub(crate) fn timeout(seconds: Option<f64>) -> PyResult<std::time::Duration> {
    match seconds {
        None => Ok(std::time::Duration::from_secs(86_400)),
        Some(seconds) if seconds.is_finite() && seconds >= 0.0 => {
            Ok(std::time::Duration::from_secs_f64(seconds.min(86_400.0)))
        }
        Some(seconds) => {
            let text = format!("timeout: expected seconds of 0 or more, got {seconds}");
            Err(pyo3::exceptions::PyValueError::new_err(text))
        }
    }
}
