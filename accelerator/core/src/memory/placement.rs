//! What the machine looks like to a caller that pins its threads. This library never pins anything itself.

use std::fs;

/// Where this thread may run and which memory is near.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Processors this thread may run on, for example `0-1`; empty where /proc does not tell.
    pub cpus_allowed: String,
    /// NUMA nodes with memory that are online, for example `0`; empty where the kernel has none.
    pub numa_nodes: String,
}

impl Placement {
    /// Reads it from /proc and /sys.
    #[must_use]
    pub fn current() -> Self {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let nodes = fs::read_to_string("/sys/devices/system/node/online").unwrap_or_default();
        Self { cpus_allowed: cpus.unwrap_or_default().trim().to_owned(), numa_nodes: nodes.trim().to_owned() }
    }

    /// One sentence on what to do for the lowest latency, or `None` where nothing is to be done.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        if !self.cpus_allowed.contains(['-', ',']) {
            return Some("one processor is allowed: spinning peers take turns; let both ends sleep, or allow two");
        }
        self.numa_nodes.contains(['-', ',']).then_some("several NUMA nodes: pin both ends to processors of one node")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(cpus: &str, nodes: &str) -> Placement {
        Placement { cpus_allowed: cpus.into(), numa_nodes: nodes.into() }
    }

    #[test]
    fn advice_names_what_slows_two_spinning_ends() {
        assert!(placement("3", "0").advice().unwrap().contains("one processor"));
        assert!(placement("0-7", "0-1").advice().unwrap().contains("NUMA"));
        assert_eq!(placement("0,2", "0").advice(), None);
    }

    #[test]
    fn this_thread_may_run_somewhere() {
        assert!(!Placement::current().cpus_allowed.is_empty());
    }
}
