//! Encryption of records: ChaCha20-Poly1305 (RFC 8439) with the record's id as associated data.

use std::fmt;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plenipo_redact::Secret;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::pbkdf2;
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::StoreFault;
use crate::key::RecordId;

/// What a sealed record begins with; JSON never does.
const MAGIC: &[u8] = b"plenipo sealed 1\n";
/// PBKDF2-HMAC-SHA256 rounds: a fraction of a second, once per process.
const ROUNDS: NonZeroU32 = NonZeroU32::new(600_000).unwrap();
pub(crate) const SALT_BYTES: usize = 16;

/// A key that records are encrypted with. Clones share nothing secret but the key.
#[derive(Clone)]
pub struct SealingKey(LessSafeKey);

impl SealingKey {
    /// A key of 32 bytes, spelled in hexadecimal or base64.
    ///
    /// # Errors
    /// [`StoreFault::BadKey`].
    pub fn parse(text: &Secret<String>) -> Result<Self, StoreFault> {
        let text = text.expose().trim();
        let bytes = match text.len() {
            64 => hexadecimal(text),
            _ => STANDARD.decode(text).ok(),
        };
        bytes.and_then(|bytes| Self::from_bytes(&bytes)).ok_or(StoreFault::BadKey)
    }

    /// A key made of a passphrase and the store's salt.
    pub(crate) fn derive(
        passphrase: &Secret<String>,
        salt: &[u8; SALT_BYTES],
    ) -> Result<Self, StoreFault> {
        let mut bytes = [0; 32];
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(algorithm, ROUNDS, salt, passphrase.expose().as_bytes(), &mut bytes);
        Self::from_bytes(&bytes).ok_or(StoreFault::BadKey)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        UnboundKey::new(&CHACHA20_POLY1305, bytes).ok().map(|key| Self(LessSafeKey::new(key)))
    }

    /// Encrypts a record.
    pub(crate) fn seal(
        &self,
        id: &RecordId,
        plain: &Secret<Vec<u8>>,
    ) -> Result<Vec<u8>, StoreFault> {
        let nonce: [u8; NONCE_LEN] = random()?;
        let mut body = plain.expose().clone();
        let (aad, own) = (Aad::from(id.as_str()), Nonce::assume_unique_for_key(nonce));
        let sealed = self.0.seal_in_place_append_tag(own, aad, &mut body);
        sealed.map_err(|_| StoreFault::TooLong)?;
        Ok([MAGIC, &nonce, &body].concat())
    }

    /// Decrypts a record.
    pub(crate) fn open(&self, id: &RecordId, sealed: &[u8]) -> Result<Secret<Vec<u8>>, StoreFault> {
        let rest = sealed.strip_prefix(MAGIC).ok_or(StoreFault::NotSealed)?;
        let (nonce, body) = rest.split_at_checked(NONCE_LEN).ok_or(StoreFault::WrongKey)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| StoreFault::WrongKey)?;
        let mut body = body.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::from(id.as_str()), &mut body);
        let length = plain.map_err(|_| StoreFault::WrongKey)?.len();
        body.truncate(length);
        Ok(Secret::new(body))
    }
}

/// What a store does with records: encrypts them, or leaves them as they are.
pub(crate) fn seal(
    key: Option<&SealingKey>,
    id: &RecordId,
    plain: &Secret<Vec<u8>>,
) -> Result<Vec<u8>, StoreFault> {
    match key {
        Some(key) => key.seal(id, plain),
        None => Ok(plain.expose().clone()),
    }
}

/// The reverse. A record that is encrypted without a key, or plain with one, is refused.
pub(crate) fn open(
    key: Option<&SealingKey>,
    id: &RecordId,
    kept: Vec<u8>,
) -> Result<Secret<Vec<u8>>, StoreFault> {
    match key {
        Some(key) => key.open(id, &kept),
        None if kept.starts_with(MAGIC) => Err(StoreFault::Sealed),
        None => Ok(Secret::new(kept)),
    }
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], StoreFault> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| StoreFault::Random)?;
    Ok(bytes)
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok()))
        .collect();
    let pairs = digits?;
    let (pairs, _) = pairs.as_chunks::<2>();
    Some(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: &str) -> RecordId {
        RecordId::parse(&digit.repeat(64)).unwrap()
    }

    #[test]
    fn a_sealed_record_opens_with_its_key_and_id_only() {
        let key = SealingKey::parse(&Secret::new("ab".repeat(32))).unwrap();
        let plain = Secret::new(b"{\"access_token\":\"hunter2\"}".to_vec());
        let sealed = key.seal(&id("a"), &plain).unwrap();
        assert!(!String::from_utf8_lossy(&sealed).contains("hunter2"));
        assert_ne!(sealed, key.seal(&id("a"), &plain).unwrap(), "a nonce is never used twice");
        let opened = |key: Option<&SealingKey>, id: &RecordId, kept: &[u8]| {
            open(key, id, kept.to_vec()).map(Secret::into_exposed)
        };
        assert_eq!(opened(Some(&key), &id("a"), &sealed).unwrap(), *plain.expose());

        let other = SealingKey::parse(&Secret::new("cd".repeat(32))).unwrap();
        let mut changed = sealed.clone();
        *changed.last_mut().unwrap() ^= 1;
        for (key, id, kept) in [
            (&other, id("a"), &sealed),
            (&key, id("b"), &sealed),
            (&key, id("a"), &changed),
            (&key, id("a"), &MAGIC.to_vec()),
        ] {
            assert!(matches!(opened(Some(key), &id, kept), Err(StoreFault::WrongKey)));
        }
        assert!(matches!(opened(None, &id("a"), &sealed), Err(StoreFault::Sealed)));
        assert!(matches!(opened(Some(&key), &id("a"), b"{}"), Err(StoreFault::NotSealed)));
        assert_eq!(opened(None, &id("a"), b"{}").unwrap(), b"{}");
    }

    #[test]
    fn keys_are_32_bytes_in_hexadecimal_or_base64() {
        let parse = |text: &str| SealingKey::parse(&Secret::new(text.to_owned()));
        assert!(parse(&STANDARD.encode([7; 32])).is_ok());
        assert!(parse(&format!("{}\n", "0f".repeat(32))).is_ok());
        for bad in ["", "00", &"g".repeat(64), &STANDARD.encode([7; 31]), &"\u{e4}".repeat(32)] {
            assert!(matches!(parse(bad), Err(StoreFault::BadKey)), "{bad}");
        }
        assert_eq!(format!("{:?}", parse(&"0f".repeat(32)).unwrap()), "SealingKey");
    }
}
