use std::time::Duration;

use plenipo_connect::{
    ConnectOptions, ErrorKind, Fleet, Member, Operation, Readiness, ServerName, StdioCommand,
};

use crate::support::{Fake, said};
use crate::web::{Answer, Web};

fn member(name: &str, fake: &Fake) -> Member {
    let name = ServerName::new(name).unwrap();
    Member::new(name, fake.command.clone(), fake.options.clone())
}

#[tokio::test]
async fn one_that_fails_or_hangs_neither_delays_nor_hides_the_others() {
    let good = Fake::new("peer", &[]);
    let broken = Fake::new("06", &[]);
    let mut slow = Fake::new("peer", &[("F_LIST", "mute")]);
    slow.options.start_timeout = Duration::from_secs(4);
    let web = Web::modern(|_| None).await;
    let deaf = Web::start(|_| Some(Answer::default().hold())).await;

    let mut missing = member("missing", &broken);
    missing.endpoint = StdioCommand::new("/no/such/server").into();
    let mut lists = member("lists", &slow);
    lists.readiness = Readiness::Catalog;
    let over_http = |name: &str, web: &Web, limit: u64| {
        let mut options: ConnectOptions = web.options.clone();
        options.start_timeout = Duration::from_secs(limit);
        Member::new(ServerName::new(name).unwrap(), web.endpoint(), options)
    };
    let members = vec![
        over_http("deaf", &deaf, 4),
        missing,
        member("good", &good),
        lists,
        over_http("web", &web, 30),
    ];

    let mut fleet = Fleet::start(members);
    assert_eq!(fleet.names().count(), 5);
    let (first, outcome) = fleet.next().await.unwrap();
    assert_eq!(first, 1, "what is not there is known first");
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Start);
    let mut connected = Vec::new();
    for _ in 0..2 {
        let (position, outcome) = fleet.next().await.unwrap();
        connected.push((position, outcome.unwrap()));
    }
    assert_eq!(fleet.starting(), 2, "before the deadline of the others");
    connected.sort_by_key(|(position, _)| *position);
    assert_eq!(connected.iter().map(|(position, _)| *position).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(said(&connected[1].1, "hi", "{}").await, "hi");

    let rest = fleet.finish().await;
    let names: Vec<_> = rest.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["deaf", "lists"], "in the order given");
    let errors: Vec<_> = rest.into_iter().map(|(_, outcome)| outcome.unwrap_err()).collect();
    assert_eq!(*errors[0].operation(), Operation::Start);
    assert_eq!(*errors[1].operation(), Operation::List);
    for (_, connection) in connected {
        connection.shut_down().await;
    }
    assert_eq!((good.processes(), slow.processes()), (0, 0));
}

#[tokio::test]
async fn a_fleet_that_is_dropped_leaves_no_process() {
    let fake = Fake::new("peer", &[("F_SLOW", "30")]);
    let fleet = Fleet::start((0..3).map(|number| member(&format!("s{number}"), &fake)));
    crate::support::until(|| fake.processes() == 3).await;
    drop(fleet);
    let limit = Duration::from_secs(10);
    tokio::task::yield_now().await;
    assert!(plenipo_testkit::Deadline::poll_until(limit, || fake.processes() == 0));
}
