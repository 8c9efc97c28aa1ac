//! What holds for every value with a layout.

/// A value comes back from its bytes and touches no others; cut bytes and short buffers are refused; and what a flipped bit
/// makes of it is refused, or is a value that comes back itself.
macro_rules! comes_back {
    ($type:ident, $value:expr) => {{
        let value = $value;
        let length = value.encoded_length();
        let mut buffer = vec![0xcc; length + 8];
        assert_eq!(value.encode(&mut buffer), Ok(length));
        assert!(buffer[length..].iter().all(|byte| *byte == 0xcc));
        buffer.truncate(length);
        assert_eq!($type::decode(&buffer), Ok(value));
        for cut in 0..length {
            assert!($type::decode(&buffer[..cut]).is_err(), "cut to {cut} bytes");
            let mut short = vec![0xcc; cut];
            assert!(value.encode(&mut short).is_err());
            assert!(short.iter().all(|byte| *byte == 0xcc));
        }
        for bit in 0..length * 8 {
            let mut flipped = buffer.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(other) = $type::decode(&flipped) {
                let mut again = vec![0; other.encoded_length()];
                assert_eq!(other.encode(&mut again), Ok(again.len()));
                assert_eq!($type::decode(&again), Ok(other), "bit {bit}");
            }
        }
    }};
}

pub(crate) use comes_back;
