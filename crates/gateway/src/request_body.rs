//! Reads request bodies: bounded in size, time and memory, and decompressed.

use std::io::{Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use futures_util::StreamExt;

use crate::error_response::{ErrorKind, GatewayError};

/// How long a client may pause within a body.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Bytes of all bodies in memory at once.
const MAX_TOTAL: usize = 512 << 20;

/// A body in memory. Its bytes count until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct RequestBody {
    pub(crate) text: String,
    _share: MemoryShare,
}

impl RequestBody {
    /// A body that was created here.
    pub(crate) fn new(text: String, memory: &BodyMemory) -> Result<RequestBody, GatewayError> {
        let mut share = MemoryShare { memory: memory.clone(), bytes: 0 };
        share.grow(text.len())?;
        Ok(RequestBody { text, _share: share })
    }
}

/// The bytes of all bodies in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyMemory(Arc<AtomicUsize>);

#[derive(Debug, Default)]
struct MemoryShare {
    memory: BodyMemory,
    bytes: usize,
}

impl MemoryShare {
    fn grow(&mut self, bytes: usize) -> Result<(), GatewayError> {
        let before = self.memory.0.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        if before.saturating_add(bytes) > MAX_TOTAL {
            return Err(GatewayError::new(ErrorKind::Busy, "too many large requests at once; try again in a moment"));
        }
        Ok(())
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Reads a whole body. It must be UTF-8, as JSON is.
pub(crate) async fn read_body(
    body: Body,
    headers: &HeaderMap,
    max: usize,
    memory: &BodyMemory,
) -> Result<RequestBody, GatewayError> {
    let mut share = MemoryShare { memory: memory.clone(), bytes: 0 };
    let bytes = receive(body, headers, max, &mut share).await?;
    let encoding = headers.get("content-encoding").map(|value| value.to_str().unwrap_or("?").trim().to_owned());
    let bytes = match encoding.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("" | "identity") => bytes,
        Some(encoding) => {
            let plain = decompress(encoding, &bytes, max)?;
            share.grow(plain.len())?;
            plain
        }
    };
    let text = String::from_utf8(bytes).map_err(|_| GatewayError::bad_request("the body is not UTF-8"))?;
    Ok(RequestBody { text, _share: share })
}

/// Reads a body as it is, for a provider that decompresses it itself.
pub(crate) async fn read_bytes(body: Body, headers: &HeaderMap, max: usize) -> Result<Vec<u8>, GatewayError> {
    let mut share = MemoryShare { memory: BodyMemory::default(), bytes: 0 };
    receive(body, headers, max, &mut share).await
}

fn too_large(max: usize) -> GatewayError {
    let message = format!("the request is larger than {max} bytes; [serve] max_body sets the limit");
    GatewayError::new(ErrorKind::TooLarge, message)
}

async fn receive(
    body: Body,
    headers: &HeaderMap,
    max: usize,
    share: &mut MemoryShare,
) -> Result<Vec<u8>, GatewayError> {
    let announced = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > max) {
        return Err(too_large(max));
    }
    let mut bytes = Vec::with_capacity(announced.unwrap_or(0).min(1 << 20));
    let mut chunks = body.into_data_stream();
    loop {
        match tokio::time::timeout(MAX_PAUSE, chunks.next()).await {
            Ok(None) => return Ok(bytes),
            Ok(Some(Ok(chunk))) => {
                share.grow(chunk.len())?;
                bytes.extend_from_slice(&chunk);
                if bytes.len() > max {
                    return Err(too_large(max));
                }
            }
            Ok(Some(Err(_))) => return Err(GatewayError::bad_request("the body broke off")),
            Err(_) => {
                let message = format!("no more of the body within {} s", MAX_PAUSE.as_secs());
                return Err(GatewayError::bad_request(message));
            }
        }
    }
}

/// Decompresses at most `max` bytes.
pub(crate) fn decompress(encoding: &str, bytes: &[u8], max: usize) -> Result<Vec<u8>, GatewayError> {
    let broken = || GatewayError::bad_request(format!("the body is not valid {encoding}"));
    let input = Cursor::new(bytes);
    match encoding {
        "gzip" | "x-gzip" => read_at_most(flate2::read::MultiGzDecoder::new(input), max, broken),
        // Some clients send raw deflate, others wrap it as the standard says.
        "deflate" => match bytes.first() {
            Some(first) if first & 0x0f == 8 => read_at_most(flate2::read::ZlibDecoder::new(input), max, broken),
            Some(_) | None => read_at_most(flate2::read::DeflateDecoder::new(input), max, broken),
        },
        "br" => read_at_most(brotli_decompressor::Decompressor::new(input, 4096), max, broken),
        "zstd" => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(input).map_err(|_| broken())?;
            read_at_most(decoder, max, broken)
        }
        _ => Err(GatewayError::bad_request(format!(
            "content-encoding `{encoding}` is not supported; use gzip, deflate, br or zstd"
        ))),
    }
}

fn read_at_most(reader: impl Read, max: usize, broken: impl Fn() -> GatewayError) -> Result<Vec<u8>, GatewayError> {
    let mut out = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(limit).read_to_end(&mut out).map_err(|_| broken())?;
    if out.len() > max { Err(too_large(max)) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn g4_compressed_bodies_are_read_within_the_limit() {
        let text = "x".repeat(10_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).expect("memory");
        let gzip = gzip.finish().expect("memory");
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(text.as_bytes()).expect("memory");
        let zlib = zlib.finish().expect("memory");
        for (encoding, bytes) in [("gzip", &gzip), ("deflate", &zlib)] {
            assert_eq!(decompress(encoding, bytes, 10_000).expect(encoding), text.as_bytes(), "{encoding}");
            let bomb = decompress(encoding, bytes, 9_999).expect_err("too large");
            assert_eq!(bomb.kind, ErrorKind::TooLarge, "{encoding}");
        }
        for encoding in ["gzip", "deflate", "br", "zstd", "lzma"] {
            let error = decompress(encoding, b"\xff\xff\xff\xff not it", 100).expect_err(encoding);
            assert_eq!(error.kind, ErrorKind::BadRequest, "{encoding}");
        }
    }
}
