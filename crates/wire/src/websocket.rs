//! Reads WebSocket frames from clients, and assembles socket bytes into complete messages. The
//! library handles masking, fragments, pings and the client's close frame; TypeScript handles the
//! upgrade and the socket.

use std::io::{self, Read, Write};

use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Bytes, Error, Message};

/// Size of the read buffer. Even an idle connection has such a buffer.
const READ_BYTES: usize = 8 * 1024;
/// Message size at which the library's buffer is freed, because the buffer has grown with the
/// message.
const LARGE_BYTES: usize = 64 * 1024;

/// Reads one connection's frames.
#[derive(Debug)]
pub struct WebSocketReader {
    frames: WebSocketContext,
    config: WebSocketConfig,
    ends: FrameEnds,
    is_over: bool,
}

/// Tracks where frames end. After the end of a frame, the library holds no data that is still
/// needed.
#[derive(Debug, Default)]
struct FrameEnds {
    /// Received bytes of the current frame's head.
    head: Vec<u8>,
    /// Payload bytes still missing, once the head is complete.
    left: Option<u64>,
}

impl FrameEnds {
    /// Returns how many of the bytes belong to the current frame, and whether the frame ends there.
    fn next(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut consumed = 0;
        while self.left.is_none() {
            let Some(byte) = bytes.get(consumed) else { return (consumed, false) };
            consumed += 1;
            self.head.push(*byte);
            self.left = payload_length(&self.head);
        }
        let there = (bytes.len() - consumed) as u64;
        let left = self.left.unwrap_or_default();
        if there < left {
            self.left = Some(left - there);
            return (bytes.len(), false);
        }
        *self = Self::default();
        (consumed + left as usize, true)
    }
}

/// Returns a frame's payload length; `None` while its head is incomplete.
fn payload_length(head: &[u8]) -> Option<u64> {
    let short = head.get(1)? & 0x7f;
    let wide = match short {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask = if head.get(1)? & 0x80 == 0 { 0 } else { 4 };
    if head.len() < 2 + wide + mask {
        return None;
    }
    let length = head[2..2 + wide].iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
    Some(if wide == 0 { u64::from(short) } else { length })
}

/// Result of processing received bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Complete messages, in order.
    pub messages: Vec<Bytes>,
    /// Bytes to send to the client: replies to its pings and its close frame.
    pub reply: Vec<u8>,
    /// Whether the connection is over, for example because the client closed it.
    pub is_over: bool,
    /// Close code and reason, if the client violated the protocol.
    pub failure: Option<(u16, String)>,
}

/// The socket as seen by the library: received bytes, and bytes to send.
struct Pipe<'a> {
    input: &'a [u8],
    output: &'a mut Vec<u8>,
}

impl Read for Pipe<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.input.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.input.read(buffer)
    }
}

impl Write for Pipe<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WebSocketReader {
    /// `most_message_bytes` limits a message, including all its fragments.
    #[must_use]
    pub fn new(most_message_bytes: usize) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(most_message_bytes))
            .max_frame_size(Some(most_message_bytes));
        let frames = WebSocketContext::new(Role::Server, Some(config));
        Self { frames, config, ends: FrameEnds::default(), is_over: false }
    }

    /// Processes received bytes; ignores them once the connection is over.
    pub fn receive(&mut self, bytes: &[u8]) -> Received {
        let mut received = Received::default();
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_over {
            let (length, is_end) = self.ends.next(rest);
            let (frame, behind) = rest.split_at(length);
            rest = behind;
            let max = self.read(frame, &mut received);
            if is_end && max >= LARGE_BYTES {
                self.frames = WebSocketContext::new(Role::Server, Some(self.config));
            }
        }
        received.is_over = self.is_over;
        received
    }

    /// Reads at most to the end of a frame; returns the length of the message that this frame
    /// completes, or 0.
    fn read(&mut self, bytes: &[u8], received: &mut Received) -> usize {
        let mut length = 0;
        let mut pipe = Pipe { input: bytes, output: &mut received.reply };
        while !self.is_over {
            match self.frames.read(&mut pipe) {
                Ok(Message::Binary(message)) => {
                    length = message.len();
                    received.messages.push(message);
                }
                Ok(Message::Text(_)) => {
                    received.failure = Some((1003, "only binary messages are accepted".to_owned()));
                    self.is_over = true;
                }
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    received.failure = failure(&error);
                    self.is_over = true;
                }
            }
        }
        length
    }
}

/// Returns the close code and reason; `None` if the client closed the connection.
fn failure(error: &Error) -> Option<(u16, String)> {
    let code = match error {
        Error::ConnectionClosed | Error::AlreadyClosed => return None,
        Error::Capacity(_) => CloseCode::Size,
        Error::Utf8(_) => CloseCode::Invalid,
        _ => CloseCode::Protocol,
    };
    Some((code.into(), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A masked frame, as clients send it.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload.len() {
            length @ 0..=125 => bytes.push(0x80 | length as u8),
            length @ 126..=65_535 => {
                bytes.push(0xfe);
                bytes.extend((length as u16).to_be_bytes());
            }
            length => {
                bytes.push(0xff);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        let mask = [0x37, 0xfa, 0x21, 0x3d];
        bytes.extend(mask);
        bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        bytes
    }

    #[test]
    fn messages_are_reassembled_regardless_of_how_their_bytes_are_split() {
        let long: Vec<u8> = (0..70_000_u32).map(|at| at as u8).collect();
        let mut bytes = frame(0x82, b"one");
        bytes.extend(frame(0x02, b"tw"));
        bytes.extend(frame(0x89, b"ping"));
        bytes.extend(frame(0x80, b"o"));
        bytes.extend(frame(0x82, &long));
        bytes.extend(frame(0x82, b"four"));
        bytes.extend(frame(0x88, &[0x03, 0xe8]));
        for step in [1, 7, 1_000, bytes.len()] {
            let mut reader = WebSocketReader::new(1 << 20);
            let mut messages = Vec::new();
            let mut reply = Vec::new();
            let mut ends = Vec::new();
            for part in bytes.chunks(step) {
                let received = reader.receive(part);
                assert_eq!(received.failure, None);
                messages.extend(received.messages);
                reply.extend(received.reply);
                ends.push(received.is_over);
            }
            assert_eq!(messages, [b"one".to_vec(), b"two".to_vec(), long.clone(), b"four".into()]);
            assert_eq!(reply, b"\x8a\x04ping\x88\x02\x03\xe8");
            assert_eq!(ends.iter().filter(|end| **end).count(), 1);
        }
    }

    #[test]
    fn a_protocol_violation_closes_the_connection_with_a_status_code() {
        let fragments = [frame(0x02, &[0; 600]), frame(0x80, &[0; 600])].concat();
        // The length alone causes the error, because no payload has arrived.
        let claimed = vec![0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4];
        let cases = [
            (claimed, 1009),
            (fragments, 1009),
            (frame(0x82, &[0; 1025]), 1009),
            (frame(0x81, b"text"), 1003),
            (vec![0x82, 0x01, b'x'], 1002),
            (frame(0xc2, b"reserved bit"), 1002),
            (frame(0x83, b"reserved kind"), 1002),
            (frame(0x80, b"continues no message"), 1002),
            (frame(0x89, &[0; 126]), 1002),
        ];
        for (bytes, code) in cases {
            let mut reader = WebSocketReader::new(1024);
            let received = reader.receive(&bytes);
            assert_eq!(received.failure.map(|(code, _)| code), Some(code));
            assert!(received.is_over && received.messages.is_empty());
            let after = reader.receive(&frame(0x82, b"x"));
            assert_eq!(after, Received { is_over: true, ..Received::default() });
        }
    }
}
