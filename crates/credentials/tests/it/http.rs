//! HTTP/1.1 on loopback, as little as an exchange takes.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use http::{Response, StatusCode};
use plenipo_oauth::{Answer, HttpClient, OutgoingRequest, TransportFault};
use plenipo_redact::Secret;

/// One connection an exchange.
#[derive(Debug)]
pub(crate) struct Loopback;

impl HttpClient for Loopback {
    fn send(&self, request: OutgoingRequest) -> Answer<'_> {
        Box::pin(async move {
            let exchange = tokio::task::spawn_blocking(move || exchange(&request));
            exchange.await.expect("the exchange ends")
        })
    }
}

fn exchange(request: &OutgoingRequest) -> Result<Response<Secret<Vec<u8>>>, TransportFault> {
    let (uri, body) = (request.message.uri(), request.message.body().expose());
    let headers: Vec<_> = request.message.headers().iter().collect();
    let mut head = format!("{} {} HTTP/1.1\r\n", request.message.method(), uri.path());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {}\r\n", value.to_str().expect("text")));
    }
    let (status, body) = send(uri.authority().expect("a host").as_str(), &head, body)
        .map_err(|error| TransportFault::Broken(error.into()))?;
    let mut response = Response::new(Secret::new(body));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}

/// Sends a head without its last empty line, and a body.
pub(crate) fn send(
    address: &str,
    head: &str,
    body: &[u8],
) -> std::io::Result<(StatusCode, Vec<u8>)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let ending = format!("Connection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), ending.as_bytes(), body].concat())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let head_ends = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let head_ends = head_ends.ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let status = std::str::from_utf8(&answer[9..12]).ok().and_then(|code| code.parse().ok());
    Ok((status.expect("a status"), answer[head_ends + 4..].to_vec()))
}
