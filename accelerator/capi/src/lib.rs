//! Channels for C programs. What the calls mean is written in `include/relay_accel.h`; a test holds both equal.
//!
//! | module | what it is |
//! |---|---|
//! | `border` | checks of pointers, panics, the last error of a thread |
//! | `transport` | a directory of segments |
//! | `ipc` | one channel: made, opened, written, read |

mod border;
mod ipc;
mod transport;

/// Version: major << 16 | minor << 8 | patch.
#[unsafe(no_mangle)]
pub extern "C" fn ra_version() -> u32 {
    let part = |text: &str| text.parse::<u32>().unwrap_or(0);
    part(env!("CARGO_PKG_VERSION_MAJOR")) << 16
        | part(env!("CARGO_PKG_VERSION_MINOR")) << 8
        | part(env!("CARGO_PKG_VERSION_PATCH"))
}
