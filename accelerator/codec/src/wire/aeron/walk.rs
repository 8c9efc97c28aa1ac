//! The frames of a datagram, in their order.

use super::control::{NakFrame, RttFrame, SetupFrame, StatusMessageFrame};
use super::data::{DataFrame, DataHeader, PadFrame};
use super::error::ErrorFrame;
use super::header::{FRAME_ALIGNMENT, FrameHeader, FrameType};
use super::resolution::ResolutionFrame;
use crate::wire::{Expected, Flyweight, WireError};

/// Any frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the frames say it")]
pub enum Frame<'a> {
    Pad(PadFrame),
    Data(DataFrame<'a>),
    Nak(NakFrame),
    StatusMessage(StatusMessageFrame),
    Error(ErrorFrame<'a>),
    Setup(SetupFrame),
    RttMeasurement(RttFrame),
    Resolution(ResolutionFrame<'a>),
}

impl<'a> Flyweight<'a> for Frame<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let number = FrameHeader::decode(bytes)?.frame_type;
        let unknown = WireError::invalid("type", 6, Expected::Within(0, 7), number);
        Ok(match FrameType::of(number).ok_or(unknown)? {
            FrameType::Pad => Self::Pad(PadFrame::decode(bytes)?),
            FrameType::Data => Self::Data(DataFrame::decode(bytes)?),
            FrameType::Nak => Self::Nak(NakFrame::decode(bytes)?),
            FrameType::StatusMessage => Self::StatusMessage(StatusMessageFrame::decode(bytes)?),
            FrameType::Error => Self::Error(ErrorFrame::decode(bytes)?),
            FrameType::Setup => Self::Setup(SetupFrame::decode(bytes)?),
            FrameType::RttMeasurement => Self::RttMeasurement(RttFrame::decode(bytes)?),
            FrameType::Resolution => Self::Resolution(ResolutionFrame::decode(bytes)?),
        })
    }

    fn encoded_length(&self) -> usize {
        match self {
            Self::Pad(frame) => frame.encoded_length(),
            Self::Data(frame) => frame.encoded_length(),
            Self::Nak(frame) => frame.encoded_length(),
            Self::StatusMessage(frame) => frame.encoded_length(),
            Self::Error(frame) => frame.encoded_length(),
            Self::Setup(frame) => frame.encoded_length(),
            Self::RttMeasurement(frame) => frame.encoded_length(),
            Self::Resolution(frame) => frame.encoded_length(),
        }
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        match self {
            Self::Pad(frame) => frame.encode(buffer),
            Self::Data(frame) => frame.encode(buffer),
            Self::Nak(frame) => frame.encode(buffer),
            Self::StatusMessage(frame) => frame.encode(buffer),
            Self::Error(frame) => frame.encode(buffer),
            Self::Setup(frame) => frame.encode(buffer),
            Self::RttMeasurement(frame) => frame.encode(buffer),
            Self::Resolution(frame) => frame.encode(buffer),
        }
    }
}

/// Walk over a datagram: where each frame begins, and the frame. Ends after the first refusal.
///
/// Costs one bounds check a frame and allocates nothing; a datagram of `n` bytes has at most `n / 32 + 1` frames.
pub fn frames(datagram: &[u8]) -> Frames<'_> {
    Frames { datagram, at: 0 }
}

/// What [`frames`] gives.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    datagram: &'a [u8],
    at: usize,
}

impl<'a> Frames<'a> {
    fn at_present(&self) -> Result<(Frame<'a>, usize), WireError> {
        let rest = &self.datagram[self.at..];
        let frame = Frame::decode(rest)?;
        let length = match frame {
            // Its header alone travels; a sender that sends the padding, too, does no harm.
            Frame::Pad(pad) if pad.frame_length as usize <= rest.len() => pad.frame_length as usize,
            Frame::Pad(_) if rest.len() > DataHeader::LENGTH => {
                return Err(WireError::truncated("padding", 0, DataHeader::LENGTH, rest.len()));
            }
            other => other.encoded_length(),
        };
        Ok((frame, length))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<(usize, Frame<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        if at >= self.datagram.len() {
            return None;
        }
        let found = self.at_present().map_err(|error| error.behind(at));
        self.at = match found {
            Ok((_, length)) => at.saturating_add(length.next_multiple_of(FRAME_ALIGNMENT)),
            Err(_) => usize::MAX,
        };
        Some(found.map(|(frame, _)| (at, frame)))
    }
}

impl std::iter::FusedIterator for Frames<'_> {}
