//! Frames: an 8-byte header and a payload, padded to 8.
//!
//! ```text
//! 0               4               8
//! +---------------+---------------+----------------------
//! | frame_length  | msg_type_id   | payload … (zero to 8)
//! +---------------+---------------+----------------------
//! ```
//!
//! `frame_length` is header + payload, so an empty payload is 8 and never 0. The header is one word: it appears whole or not at all.

/// Bytes of a frame's header, and the alignment of frames.
pub const HEADER_LENGTH: usize = 8;
/// Largest payload of any ring, in bytes; a ring of less than 128 MiB allows an eighth of its capacity.
pub const PAYLOAD_LENGTH_MAX: usize = 1 << 24;
/// Slots that an in-progress header can name.
pub(crate) const SLOT_COUNT_MAX: usize = 1 << 10;
/// Generations of one slot that an in-progress header can tell apart.
pub(crate) const GENERATION_MASK: u64 = (1 << 20) - 1;

/// Bytes that a frame takes, header and alignment included.
#[inline]
pub(crate) const fn frame_length(payload_length: usize) -> usize {
    (HEADER_LENGTH + payload_length).next_multiple_of(HEADER_LENGTH)
}

#[inline]
const fn word(length: i32, type_id: i32) -> u64 {
    length as u32 as u64 | (type_id as u32 as u64) << 32
}

/// The header of a committed frame.
#[inline]
pub(crate) const fn data_header(payload_length: usize, type_id: i32) -> u64 {
    word((HEADER_LENGTH + payload_length) as i32, type_id)
}

/// The header of bytes to skip, itself included.
#[inline]
pub(crate) const fn padding_header(length: usize) -> u64 {
    word(-(length as i32), 0)
}

/// The header of a claim that its producer has not committed yet.
#[inline]
pub(crate) const fn in_progress_header(length: usize, slot: usize, generation: u64) -> u64 {
    let owner = 1 + slot as i32 + ((generation & GENERATION_MASK) as i32) * SLOT_COUNT_MAX as i32;
    word(-(length as i32), -owner)
}

/// What a header word says. Lengths are checked: they fit into the room that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// Nothing was written here yet.
    Empty,
    Data {
        type_id: i32,
        payload_length: usize,
    },
    Padding {
        length: usize,
    },
    InProgress {
        length: usize,
        slot: usize,
        generation: u64,
    },
    Invalid,
}

impl Header {
    /// Reads a word that anybody may have written. `room` is what lies before the end of the published bytes and of the buffer.
    #[inline]
    pub(crate) fn parse(word: u64, room: usize, payload_length_max: usize) -> Self {
        let length = word as u32 as i32;
        let type_id = (word >> 32) as i32;
        if length > 0 {
            let payload_length = (length as usize).wrapping_sub(HEADER_LENGTH);
            let fits = payload_length <= payload_length_max && frame_length(payload_length) <= room;
            return if fits && type_id > 0 { Self::Data { type_id, payload_length } } else { Self::Invalid };
        }
        if word == 0 {
            return Self::Empty;
        }
        let length = length.unsigned_abs() as usize;
        if length == 0 || length > room || !length.is_multiple_of(HEADER_LENGTH) {
            return Self::Invalid;
        }
        match type_id {
            0 => Self::Padding { length },
            1.. => Self::Invalid,
            _ => {
                let owner = (type_id.unsigned_abs() - 1) as usize;
                let generation = (owner / SLOT_COUNT_MAX) as u64;
                Self::InProgress { length, slot: owner % SLOT_COUNT_MAX, generation }
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_payload_is_a_frame_of_eight_bytes() {
        assert_eq!(frame_length(0), 8);
        assert_eq!(data_header(0, 7).to_le_bytes(), [8, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(Header::parse(data_header(0, 7), 8, 16), Header::Data { type_id: 7, payload_length: 0 });
    }

    #[test]
    fn an_in_progress_header_names_slot_and_generation() {
        let header = in_progress_header(24, 31, 5);
        assert_eq!(Header::parse(header, 24, 16), Header::InProgress { length: 24, slot: 31, generation: 5 });
        assert_eq!(in_progress_header(24, 0, 0).to_le_bytes(), [0xe8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    }

    proptest! {
        #[test]
        fn whatever_a_word_says_its_length_fits_into_the_room(word: u64, room in 0usize..1 << 20, payload_max in 0usize..1 << 24) {
            let room = room / 8 * 8;
            match Header::parse(word, room, payload_max) {
                Header::Data { payload_length, type_id } => {
                    prop_assert!(frame_length(payload_length) <= room && payload_length <= payload_max && type_id > 0);
                }
                Header::Padding { length } | Header::InProgress { length, .. } => {
                    prop_assert!(length > 0 && length <= room && length.is_multiple_of(8));
                }
                Header::Empty => prop_assert_eq!(word, 0),
                Header::Invalid => prop_assert_ne!(word, 0),
            }
        }

        #[test]
        fn what_was_written_is_read(payload_length in 0usize..4096, type_id in 1i32.., slot in 0usize..SLOT_COUNT_MAX, generation in 0..=GENERATION_MASK) {
            let total = frame_length(payload_length);
            prop_assert_eq!(Header::parse(data_header(payload_length, type_id), total, 4096), Header::Data { type_id, payload_length });
            prop_assert_eq!(Header::parse(padding_header(total), total, 0), Header::Padding { length: total });
            prop_assert_eq!(Header::parse(in_progress_header(total, slot, generation), total, 0), Header::InProgress { length: total, slot, generation });
        }
    }
}
