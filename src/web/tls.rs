//! TLS with the user's certificate.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, version};

/// What accepts connections by TLS.
pub use tokio_rustls::TlsAcceptor as Acceptor;

use tiro_base::error::{Error, Kind, Result, quoted};

/// Returns what accepts connections with the certificate chain in the file `certificate` and its private key in the file
/// `key`, both as PEM.
///
/// Errors with [`Kind::BadInput`] if a file is not what it should be, or if the two don't belong together.
pub fn acceptor(certificate: &Path, key: &Path) -> Result<Acceptor> {
    let wrong = |what: &str, path: &Path| {
        Error::new(Kind::BadInput, format!("`{}` is not {what}", quoted(path.display())))
    };
    let is_certificate = "a certificate chain in PEM";
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| wrong(is_certificate, certificate).source(error))?;
    if chain.is_empty() {
        return Err(wrong(is_certificate, certificate));
    }
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| wrong("a private key in PEM", key).source(error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private));
    let mut config = config.map_err(|error| {
        Error::new(Kind::BadInput, "the certificate and the private key can't be used together").source(error)
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Acceptor::from(Arc::new(config)))
}
