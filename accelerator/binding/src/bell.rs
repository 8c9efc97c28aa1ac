//! A reader's descriptor for pollers.

use std::os::fd::{AsFd, AsRawFd};

use pyo3::prelude::*;
use relay_accel_core::Error;
use relay_accel_core::ring::{Armed, Bell};

use crate::errors::raised;

type Hang = Box<dyn Fn() -> Result<Bell, Error> + Send + Sync>;

/// Hung up when it is first asked for; a reader on the heap has none.
pub(crate) struct Ringer {
    hang: Hang,
    bell: Option<Bell>,
}

impl Ringer {
    pub(crate) fn new(hang: impl Fn() -> Result<Bell, Error> + Send + Sync + 'static) -> Self {
        Self { hang: Box::new(hang), bell: None }
    }

    fn bell(&mut self, py: Python<'_>) -> PyResult<&Bell> {
        if self.bell.is_none() {
            self.bell = Some((self.hang)().map_err(|error| raised(py, error))?);
        }
        self.bell.as_ref().ok_or_else(crate::errors::closed)
    }

    pub(crate) fn fileno(&mut self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.bell(py)?.as_fd().as_raw_fd())
    }

    /// 0 for ready, 1 for sleep, 2 for a brief sleep.
    pub(crate) fn arm(&mut self, py: Python<'_>, is_ready: impl FnMut() -> bool) -> PyResult<u8> {
        let bell = self.bell(py)?;
        bell.drain();
        Ok(match bell.arm(is_ready) {
            Armed::Ready => 0,
            Armed::Sleep => 1,
            Armed::SleepBriefly => 2,
        })
    }
}
