//! Who signed a JWT: each algorithm with a key of its own, and everything that is not that key.

use std::slice::from_ref;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plenipo_oauth::error::AssertionFault;
use plenipo_oauth::jose::PublicKeys;
use plenipo_oauth::{Issuer, OAuthError, verify_id_token};
use plenipo_redact::Secret;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
    RsaEncoding, RsaKeyPair, RsaPublicKeyComponents,
};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};

const NOW: u64 = 1_800_000_000;

type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

struct Signer {
    algorithm: &'static str,
    jwk: Value,
    sign: Sign,
}

fn base64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn curve(name: &str, algorithm: &'static str, signing: &'static EcdsaSigningAlgorithm) -> Signer {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(signing, &random).unwrap();
    let key = EcdsaKeyPair::from_pkcs8(signing, document.as_ref(), &random).unwrap();
    let (x, y) = key.public_key().as_ref()[1..].split_at(key.public_key().as_ref().len() / 2);
    let jwk = json!({"kty": "EC", "crv": name, "kid": "k1", "x": base64(x), "y": base64(y)});
    let sign = move |text: &[u8]| key.sign(&SystemRandom::new(), text).unwrap().as_ref().to_vec();
    Signer { algorithm, jwk, sign: Box::new(sign) }
}

fn edwards() -> Signer {
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let key = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
    let x = base64(key.public_key().as_ref());
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "k1", "x": x});
    Signer { algorithm: "EdDSA", jwk, sign: Box::new(move |text| key.sign(text).as_ref().to_vec()) }
}

fn rsa(algorithm: &'static str, padding: &'static dyn RsaEncoding) -> Signer {
    let document = PrivatePkcs8KeyDer::from_pem_slice(include_bytes!("keys/rs256.pem")).unwrap();
    let key = RsaKeyPair::from_pkcs8(document.secret_pkcs8_der()).unwrap();
    let public = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
    let jwk = json!({"kty": "RSA", "kid": "k1", "n": base64(&public.n), "e": base64(&public.e)});
    let sign = move |text: &[u8]| {
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(padding, &SystemRandom::new(), text, &mut signature).unwrap();
        signature
    };
    Signer { algorithm, jwk, sign: Box::new(sign) }
}

fn p256() -> Signer {
    curve("P-256", "ES256", &ECDSA_P256_SHA256_FIXED_SIGNING)
}

impl Signer {
    fn jwt(&self, header: &Value) -> String {
        let claims = json!({"iss": "https://idp.example", "sub": "u1", "aud": "c1", "nonce": "n1",
            "exp": NOW + 60, "iat": NOW});
        let text = format!(
            "{}.{}",
            base64(header.to_string().as_bytes()),
            base64(claims.to_string().as_bytes())
        );
        format!("{text}.{}", base64(&(self.sign)(text.as_bytes())))
    }

    fn usual(&self) -> String {
        self.jwt(&json!({"alg": self.algorithm, "kid": "k1"}))
    }

    /// The key as published, with changes; `null` removes.
    fn published(&self, changes: &Value) -> Value {
        let mut jwk = self.jwk.clone();
        for (name, value) in changes.as_object().unwrap() {
            jwk[name] = value.clone();
        }
        jwk.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        jwk
    }
}

fn verified(jwt: &str, keys: &[Value]) -> Result<(), AssertionFault> {
    let issuer = Issuer::parse("https://idp.example").unwrap();
    let (token, nonce) = (Secret::new(jwt.to_owned()), Secret::new("n1".to_owned()));
    let now = UNIX_EPOCH + Duration::from_secs(NOW);
    let keys = PublicKeys::of(keys);
    match verify_id_token(&token, &keys, (&issuer, "c1"), Some(&nonce), now) {
        Ok(subject) => {
            assert_eq!(subject.subject, "u1");
            Ok(())
        }
        Err(OAuthError::Assertion { fault, .. }) => Err(fault),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_token_is_verified_by_the_key_that_signed_it() {
    for signer in [
        p256(),
        curve("P-384", "ES384", &ECDSA_P384_SHA384_FIXED_SIGNING),
        edwards(),
        rsa("RS256", &RSA_PKCS1_SHA256),
        rsa("PS256", &RSA_PSS_SHA256),
    ] {
        let jwt = signer.usual();
        let none = Value::Null;
        for good in [
            vec![signer.jwk.clone()],
            vec![p256().jwk, signer.jwk.clone()],
            vec![signer.published(&json!({"kid": none}))],
            vec![signer.published(&json!({"use": "sig", "alg": signer.algorithm}))],
        ] {
            verified(&jwt, &good).unwrap();
        }
        verified(&signer.jwt(&json!({"alg": signer.algorithm})), from_ref(&signer.jwk)).unwrap();
        for bad in [
            vec![],
            vec![p256().jwk],
            vec![signer.published(&json!({"kid": "k2"}))],
            vec![signer.published(&json!({"use": "enc"}))],
            vec![signer.published(&json!({"alg": "RS512"}))],
            vec![signer.published(&json!({"x": none, "n": none}))],
        ] {
            let fault = verified(&jwt, &bad).unwrap_err();
            assert!(matches!(fault, AssertionFault::Signature), "{bad:?}: {fault}");
        }
    }
}

#[test]
fn a_token_that_was_changed_is_nobodys() {
    let signer = p256();
    let keys = [signer.jwk.clone()];
    let jwt = signer.usual();
    let parts: Vec<&str> = jwt.split('.').collect();
    let claims = base64(
        json!({"iss": "https://idp.example", "sub": "u2", "aud": "c1",
        "nonce": "n1", "exp": NOW + 60})
        .to_string()
        .as_bytes(),
    );
    let header = |value: Value| base64(value.to_string().as_bytes());
    for changed in [
        format!("{}.{claims}.{}", parts[0], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}.{}", parts[0], parts[1], base64(&[0; 64])),
        format!("{}.{}.{}", header(json!({"alg": "HS256", "kid": "k1"})), parts[1], parts[2]),
        format!("{}.{}.{}", header(json!({"alg": "ES384", "kid": "k1"})), parts[1], parts[2]),
    ] {
        assert!(verified(&changed, &keys).is_err(), "{changed}");
    }
    for header in [
        json!({"alg": "none"}),
        json!({"kid": "k1"}),
        json!({"alg": "ES256", "crit": ["b64"], "b64": false}),
    ] {
        let fault = verified(&signer.jwt(&header), &keys).unwrap_err();
        assert!(matches!(fault, AssertionFault::Algorithm), "{header}: {fault}");
    }
}
