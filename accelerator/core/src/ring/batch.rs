//! Many messages in one private buffer: what crosses a language border.

/// Payloads end to end, with their types. Reused from poll to poll, it allocates nothing once it has grown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    type_ids: Vec<i32>,
}

impl FrameBatch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch with room for so many messages and bytes of payload.
    #[must_use]
    pub fn with_capacity(messages: usize, payload_bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(payload_bytes),
            ends: Vec::with_capacity(messages),
            type_ids: Vec::with_capacity(messages),
        }
    }

    /// Forgets the messages and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.type_ids.clear();
    }

    /// Messages in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All payloads, end to end without padding: records of one size are an array.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each payload ends in [`FrameBatch::bytes`]; it begins where the one before ends.
    #[must_use]
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The type of each message.
    #[must_use]
    pub fn type_ids(&self) -> &[i32] {
        &self.type_ids
    }

    /// Type and payload of each message.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let payloads = starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end]);
        self.type_ids.iter().copied().zip(payloads)
    }

    /// Gives up the memory: payloads, ends, types.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, Vec<usize>, Vec<i32>) {
        (self.bytes, self.ends, self.type_ids)
    }

    #[inline]
    pub(crate) fn push(&mut self, type_id: i32, append: impl FnOnce(&mut Vec<u8>)) {
        append(&mut self.bytes);
        self.ends.push(self.bytes.len());
        self.type_ids.push(type_id);
    }
}
