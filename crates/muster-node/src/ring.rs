//! The last bytes of an endless output, each with its place in it. Bounded; knows no reader.

use std::collections::VecDeque;

/// How much of a worker's output is kept.
pub(crate) const RING_BYTES: usize = 256 * 1024;

/// The last [`RING_BYTES`] of an output.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: VecDeque<u8>,
    /// How many bytes there ever were.
    end: u64,
    room: usize,
}

impl Ring {
    /// An empty one. Takes memory only as it fills.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            end: 0,
            room,
        }
    }

    /// Appends; the oldest make room.
    pub(crate) fn push(&mut self, more: &[u8]) {
        self.end += more.len() as u64;
        let more = &more[more.len().saturating_sub(self.room)..];
        let over = (self.bytes.len() + more.len()).saturating_sub(self.room);
        self.bytes.drain(..over.min(self.bytes.len()));
        self.bytes.extend(more);
    }

    /// The place after the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The place of the oldest byte that is kept.
    pub(crate) fn start(&self) -> u64 {
        self.end - self.bytes.len() as u64
    }

    /// At most `max` bytes from a place on; from the oldest kept when that place is gone.
    pub(crate) fn from(&self, place: u64, max: usize) -> (u64, Vec<u8>) {
        let place = place.clamp(self.start(), self.end);
        let skip = usize::try_from(place - self.start()).unwrap_or(usize::MAX);
        let until = self.bytes.len().min(skip.saturating_add(max));
        (place, self.bytes.range(skip..until).copied().collect())
    }

    /// The last `max` bytes, none before `place`.
    pub(crate) fn tail_since(&self, place: u64, max: usize) -> Vec<u8> {
        self.from(place.max(self.end.saturating_sub(max as u64)), max)
            .1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_kept_with_their_places() {
        let mut ring = Ring::new(4);
        ring.push(b"ab");
        assert_eq!(ring.from(0, 9), (0, b"ab".to_vec()));
        ring.push(b"cdef");
        assert_eq!((ring.start(), ring.end()), (2, 6));
        assert_eq!(ring.from(0, 9), (2, b"cdef".to_vec()));
        assert_eq!(ring.from(3, 2), (3, b"de".to_vec()));
        assert_eq!(ring.from(99, 2), (6, Vec::new()));
        assert_eq!(ring.tail_since(0, 3), b"def");
        assert_eq!(ring.tail_since(5, 3), b"f");
        ring.push(b"0123456789");
        assert_eq!(ring.from(0, 9), (12, b"6789".to_vec()));
    }
}
