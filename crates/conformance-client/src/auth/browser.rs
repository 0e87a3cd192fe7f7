//! A browser that consents at once: it asks for the page and tells where it was sent back to.

use http::{Request, header};
use plenipo_connect::oauth::{GrantError, Granting, OAuthNetwork, SignInPrompt};
use plenipo_oauth::{HttpClient as _, OutgoingRequest, SignIn};
use plenipo_redact::Secret;

#[derive(Debug)]
pub(super) struct Browser {
    network: OAuthNetwork,
}

impl Browser {
    pub(super) fn new(network: OAuthNetwork) -> Self {
        Self { network }
    }

    async fn open(
        &self,
        url: &str,
    ) -> Result<Secret<String>, Box<dyn std::error::Error + Send + Sync>> {
        let request = Request::get(url).body(Secret::new(Vec::new()))?;
        let request = OutgoingRequest::new(request, self.network.addresses());
        let response = self.network.send(request).await?;
        let location = response.headers().get(header::LOCATION);
        let location = location.ok_or("the page did not send the browser back")?;
        Ok(Secret::new(location.to_str()?.to_owned()))
    }
}

impl SignInPrompt for Browser {
    fn redirect_uri(&self) -> String {
        // Nothing has to listen there: the answer is read from the redirection.
        "http://127.0.0.1:48127/callback".to_owned()
    }

    fn answer<'a>(&'a self, sign_in: &'a SignIn) -> Granting<'a, Secret<String>> {
        Box::pin(async { self.open(sign_in.url.expose()).await.map_err(GrantError::Prompt) })
    }
}
