//! As much of HTTP/1.1 as is needed, so that answers can break off wherever a test wants it.

use std::{collections::BTreeMap, io};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

/// A request without body.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    /// By name in lower case.
    pub(super) headers: BTreeMap<String, String>,
}

impl Request {
    /// The next one; `None` = the client is gone.
    pub(super) async fn read<S: AsyncRead + Unpin>(
        stream: &mut BufReader<S>,
    ) -> io::Result<Option<Self>> {
        let Some(first) = line(stream).await? else {
            return Ok(None);
        };
        let mut words = first.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Self {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            headers: BTreeMap::new(),
        };
        while let Some(line) = line(stream).await? {
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            let value = value.trim().to_owned();
            request.headers.insert(name.to_ascii_lowercase(), value);
        }
        Ok(Some(request))
    }

    /// A parameter of the query; what is sent has nothing but slashes to be decoded.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = self
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(key, _)| *key == name)?;
        Some(value.replace("%2F", "/").replace("%2f", "/"))
    }
}

async fn line<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> io::Result<Option<String>> {
    let mut line = String::new();
    let length = stream.read_line(&mut line).await?;
    Ok((length > 0).then(|| line.trim_end().to_owned()))
}

/// The head of an answer with a body of this length, or in chunks.
pub(super) async fn head<S: AsyncWrite + Unpin>(
    stream: &mut S,
    status: u16,
    length: Option<usize>,
) -> io::Result<()> {
    let body = match length {
        Some(length) => format!("content-length: {length}"),
        None => "transfer-encoding: chunked".to_owned(),
    };
    let head = format!("HTTP/1.1 {status} x\r\ncontent-type: application/json\r\n{body}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.flush().await
}

/// One chunk; an empty one ends the body.
pub(super) async fn chunk<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> io::Result<()> {
    let size = format!("{:x}\r\n", bytes.len());
    stream.write_all(size.as_bytes()).await?;
    stream.write_all(bytes).await?;
    stream.write_all(b"\r\n").await?;
    stream.flush().await
}
