//! A client that sends exactly the bytes it is told to, so that a test can break every rule of
//! HTTP. Reads one answer; every wait has an end.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long any answer may take in a test.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Its status.
    pub(crate) status: u16,
    /// Its headers, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Its body.
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {} {}", self.status, self.text()))
    }

    /// The word of an error, in the plane's own shape or in the envelope for Relay brokers.
    pub(crate) fn category(&self) -> String {
        let body = self.json();
        body["error_category"]
            .as_str()
            .or_else(|| body["error"]["code"].as_str())
            .unwrap_or("")
            .to_owned()
    }

    /// Reads an answer that ends with its connection.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut body = bytes[end + 4..].to_vec();
        if headers
            .iter()
            .any(|(n, v)| n == "transfer-encoding" && v == "chunked")
        {
            body = unchunk(&body);
        }
        Some(Self {
            status,
            headers,
            body,
        })
    }
}

fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(at) = bytes.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..at])
            .ok()
            .and_then(|s| usize::from_str_radix(s, 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else {
            break;
        };
        let rest = &bytes[at + 2..];
        out.extend_from_slice(&rest[..size.min(rest.len())]);
        bytes = rest.get(size + 2..).unwrap_or(&[]);
    }
    out
}

/// Sends bytes and reads the answer until the connection ends; of an endless stream only what
/// came with its head.
pub(crate) async fn raw(to: SocketAddr, bytes: &[u8]) -> Option<Answer> {
    timeout(DEADLINE, async {
        let mut stream = TcpStream::connect(to).await.expect("connect");
        let (mut from, mut into) = stream.split();
        let mut got = Vec::new();
        let mut piece = vec![0; 16 * 1024];
        // The plane may answer and close before it has read everything, so both go on at once.
        let mut write = Box::pin(into.write_all(bytes));
        let mut written = false;
        loop {
            let n = tokio::select! {
                _ = &mut write, if !written => { written = true; continue }
                n = from.read(&mut piece) => n.unwrap_or(0),
            };
            if n == 0 {
                return Answer::parse(&got);
            }
            got.extend_from_slice(&piece[..n]);
            let head = Answer::parse(&got);
            let kind = head
                .as_ref()
                .and_then(|head| head.header("content-type"))
                .unwrap_or("");
            if kind.starts_with("text/event-stream")
                || head.as_ref().is_some_and(|head| head.status == 101)
            {
                return head;
            }
        }
    })
    .await
    .expect("an answer within the deadline")
}

/// A request with the headers a client sends, and `Connection: close`.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        head.push_str("Host: localhost\r\n");
    }
    let framed = |name: &str| {
        name.eq_ignore_ascii_case("content-length")
            || name.eq_ignore_ascii_case("transfer-encoding")
    };
    if !headers.iter().any(|(name, _)| framed(name)) && (!body.is_empty() || method != "GET") {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
