//! One keep-alive HTTP/1.1 connection that does as little as a client can: bytes out, a status
//! and a body of known length back. Not a general client.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection and what was read from it so far.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Dials.
    pub(crate) async fn open(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(4096),
        })
    }

    /// Sends a request, whole.
    pub(crate) async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await
    }

    /// Waits for the answer: its status and body.
    pub(crate) async fn receive(&mut self) -> io::Result<(u16, Vec<u8>)> {
        loop {
            if let Some((status, head, body)) = measure(&self.buffer)?
                && self.buffer.len() >= head + body
            {
                let bytes = self.buffer[head..head + body].to_vec();
                self.buffer.drain(..head + body);
                return Ok((status, bytes));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Both.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        self.send(request).await?;
        self.receive().await
    }
}

/// Status, length of the head and length of the body, once the head is there.
fn measure(bytes: &[u8]) -> io::Result<Option<(u16, usize, usize)>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| wrong("a head that is not text"))?;
    let status = head
        .get(9..12)
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| wrong("no status line"))?;
    let mut length = None;
    for line in head.split("\r\n").skip(1) {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
        }
    }
    let bodiless = matches!(status, 204 | 304);
    let body = if bodiless { Some(0) } else { length };
    let body = body.ok_or_else(|| wrong("an answer without a content-length"))?;
    Ok(Some((status, end + 4, body)))
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, host: SocketAddr, body: &str) -> Vec<u8> {
    request_with_key(None, method, path, host, body)
}

/// The bytes of a request that carries a key.
pub(crate) fn request_with_key(
    key: Option<&str>,
    method: &str,
    path: &str,
    host: SocketAddr,
    body: &str,
) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n");
    if let Some(key) = key {
        text.push_str(&format!("x-api-key: {key}\r\n"));
    }
    if method != "GET" {
        text.push_str("content-type: application/json\r\n");
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    text.push_str(body);
    text.into_bytes()
}
