//! Exchanges on connections of their own.

use std::net::IpAddr;

use bytes::Bytes;
use http::Request;
use plenipo_http::{ClientFault, HttpCause, HttpClient, SingleExchanges};

use crate::support::{Raw, response};

fn request(server: &Raw) -> Request<Bytes> {
    let url = format!("http://localhost:{}/token", server.port);
    Request::get(url).body(Bytes::new()).unwrap()
}

#[tokio::test]
async fn an_exchange_goes_to_addresses_that_are_let_through_and_to_no_other() {
    let mut server = Raw::start(response(200, "{}"), false).await;
    let exchanges = SingleExchanges::new(HttpClient::default());
    let all = |host: &str, found: &[IpAddr]| {
        assert_eq!(host, "localhost");
        Ok::<_, HttpCause>(found.to_vec())
    };
    let none = |_: &str, _: &[IpAddr]| Err::<Vec<IpAddr>, HttpCause>("not there".into());
    for expected in [1, 1] {
        let answer = exchanges.exchange(request(&server), &all, 2).await.unwrap();
        assert_eq!(answer.into_body(), "{}");
        assert_eq!(server.connections(), expected, "none is kept");
    }
    let refused = exchanges.exchange(request(&server), &none, 2).await.unwrap_err();
    assert_eq!((refused.to_string().as_str(), server.connections()), ("not there", 0));
}

#[tokio::test]
async fn an_exchange_is_bounded() {
    let server = Raw::start(response(200, "{ }"), false).await;
    let exchanges = SingleExchanges::new(HttpClient::default());
    let all = |_: &str, found: &[IpAddr]| Ok::<_, HttpCause>(found.to_vec());
    let cause = exchanges.exchange(request(&server), &all, 2).await.unwrap_err();
    let too_long = matches!(cause.downcast_ref(), Some(ClientFault::TooLong { limit: 2 }));
    assert!(too_long, "{cause}");
}
