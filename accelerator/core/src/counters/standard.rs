//! Counters that mean the same everywhere. Ids are stable and never used again.

/// One standard counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandardCounter {
    /// Type id.
    pub type_id: i32,
    /// Label.
    pub label: &'static str,
}

const fn of(type_id: i32, label: &'static str) -> StandardCounter {
    StandardCounter { type_id, label }
}

/// Seven groups: ipc, network, reliability, archive, cluster, sequencer, system.
pub const STANDARD: [StandardCounter; 31] = [
    of(0, "ipc.messages.published"),
    of(1, "ipc.messages.received"),
    of(2, "ipc.bytes.published"),
    of(3, "ipc.bytes.received"),
    of(4, "ipc.back_pressured"),
    of(100, "net.packets.sent"),
    of(101, "net.packets.received"),
    of(102, "net.bytes.sent"),
    of(103, "net.bytes.received"),
    of(104, "net.packets.invalid"),
    of(105, "net.send.failed"),
    of(200, "rel.naks.sent"),
    of(201, "rel.naks.received"),
    of(202, "rel.retransmits.sent"),
    of(203, "rel.repeats.received"),
    of(204, "rel.gaps.unrecoverable"),
    of(205, "rel.heartbeats.received"),
    of(300, "arc.records.written"),
    of(301, "arc.bytes.written"),
    of(302, "arc.segments.sealed"),
    of(303, "arc.records.replayed"),
    of(400, "clu.term"),
    of(401, "clu.elections"),
    of(402, "clu.entries.appended"),
    of(403, "clu.commit.index"),
    of(404, "clu.snapshots"),
    of(405, "clu.leader.changes"),
    of(500, "seq.messages.ordered"),
    of(501, "seq.streams"),
    of(900, "sys.errors"),
    of(901, "sys.started_at_ns"),
];

/// The standard counter of a type id.
#[must_use]
pub fn standard(type_id: i32) -> Option<StandardCounter> {
    STANDARD.into_iter().find(|counter| counter.type_id == type_id)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn ids_ascend_labels_are_short_and_name_their_group() {
        assert!(STANDARD.windows(2).all(|pair| pair[0].type_id < pair[1].type_id));
        let groups = [(0, "ipc"), (100, "net"), (200, "rel"), (300, "arc"), (400, "clu"), (500, "seq"), (900, "sys")];
        for counter in STANDARD {
            let (_, group) = groups.into_iter().rev().find(|(first, _)| *first <= counter.type_id).unwrap();
            assert!(counter.label.starts_with(group) && counter.label.len() <= super::super::LABEL_LENGTH_MAX);
        }
        assert_eq!(standard(201).unwrap().label, "rel.naks.received");
        assert!(standard(6).is_none());
    }
}
