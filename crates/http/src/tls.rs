//! TLS by rustls with ring: the system's certificate authorities, and those of one more file.
//!
//! The system's, because a company's own authority is there and nowhere else; read when the first
//! TLS connection is made.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::HttpClientOptions;
use crate::error::{ClientFault, HttpCause};

/// Where systems keep their bundle; the first that is there is read.
const BUNDLES: [&str; 7] = [
    "/etc/ssl/certs/ca-certificates.crt", // Debian, Ubuntu, Arch, Gentoo
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, Red Hat
    "/etc/pki/tls/certs/ca-bundle.crt",   // older Red Hat
    "/etc/ssl/ca-bundle.pem",             // openSUSE
    "/etc/ssl/cert.pem",                  // Alpine, macOS
    "/usr/local/share/certs/ca-root-nss.crt", // FreeBSD
    "/etc/openssl/certs/ca-certificates.crt", // NetBSD
];

/// As ALPN names it (RFC 9113 §3.2).
const HTTP_2: &[u8] = b"h2";

#[derive(Debug, Default)]
pub(crate) struct Tls {
    extra: Option<PathBuf>,
    config: Mutex<Option<Arc<ClientConfig>>>,
}

impl Tls {
    pub(crate) fn new(extra: Option<PathBuf>) -> Self {
        Self { extra, config: Mutex::default() }
    }

    pub(crate) async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, HttpCause> {
        let config = self.config()?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host)?;
        Ok(TlsConnector::from(config).connect(name, stream).await?)
    }

    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, HttpCause> {
        let mut config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = &*config {
            return Ok(Arc::clone(config));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut made = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(self.roots()?)
            .with_no_client_auth();
        made.alpn_protocols = vec![HTTP_2.to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::clone(config.insert(Arc::new(made))))
    }

    fn roots(&self) -> Result<RootCertStore, HttpCause> {
        let mut roots = RootCertStore::empty();
        if let Some(bundle) = BUNDLES.iter().map(Path::new).find(|path| path.is_file()) {
            add(&mut roots, bundle)?;
        }
        if let Some(extra) = &self.extra {
            add(&mut roots, extra)?;
        }
        match roots.is_empty() {
            true => {
                Err("the system has no certificate authorities: install ca-certificates".into())
            }
            false => Ok(roots),
        }
    }
}

impl HttpClientOptions {
    /// The TLS configuration of this client, for another protocol than HTTP: whoever uses it sets the
    /// names of that protocol.
    ///
    /// # Errors
    /// No certificate authorities, or a file of them that cannot be read.
    pub fn tls_config(&self) -> Result<Arc<ClientConfig>, HttpCause> {
        Tls::new(self.extra_roots.clone()).config()
    }
}

/// Whether the server chose HTTP/2.
pub(crate) fn speaks_http_2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP_2)
}

/// A certificate that cannot be read is left out, as other clients do; a file that cannot is not.
fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), ClientFault> {
    let fault = |source: HttpCause| ClientFault::Roots { path: path.to_owned(), source };
    let found = CertificateDer::pem_file_iter(path).map_err(|error| fault(Box::new(error)))?;
    let (added, _) = roots.add_parsable_certificates(found.filter_map(Result::ok));
    match added {
        0 => Err(fault("it holds no certificate".into())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use plenipo_testkit::Fixture;

    use super::*;

    #[test]
    fn a_file_without_certificates_is_a_fault_that_names_it() {
        let fixture = Fixture::new();
        let path = fixture.file("ca.pem", "nothing");
        for extra in [path, fixture.join("missing.pem")] {
            let error = Tls::new(Some(extra.clone())).config().unwrap_err().to_string();
            assert!(error.contains(extra.to_str().unwrap()), "{error}");
        }
    }
}
