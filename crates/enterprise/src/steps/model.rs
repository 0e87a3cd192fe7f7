//! Every way in which sign-ins, sign-outs and exchanges of several processes can fall together, with
//! a kill of any process at any step and every answer an identity provider may give. The walked code
//! is the one that runs; what must hold is written here from the outside: it looks at tokens, people
//! and the order of events, never at generations.

use std::collections::HashMap;

use plenipo_oauth::Issuer;

use super::{Came, End, Entry, Exchange, Place, Sequence, SignIn, SignOut, Step};
use crate::identity::{Generation, Identity, Pin, Source};

/// A refresh token: whose, of which sign-in, and the how manyeth of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Token {
    person: u8,
    sign_in: u8,
    number: u8,
    rejected: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Task {
    /// Begins a sign-in of this person.
    Begin(u8),
    SignIn(SignIn<Token>),
    SignOut(SignOut<Token>),
    Exchange(Exchange<Token>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "every state is copied whole anyway")]
enum State {
    /// What is to be done next.
    Next(Step<Token>),
    /// Asked, and not answered yet.
    Asking(Token),
    Killed,
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Process {
    task: Task,
    state: State,
    /// Sign-outs that were started after this sign-in was begun.
    followed_by: [bool; 3],
    /// One of them came to its end.
    outdated: bool,
}

/// All there is, and what happened as far as the checks need it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    processes: Vec<Process>,
    slot: Option<Generation>,
    entry: Option<Entry<Token>>,
    holders: [Option<usize>; 2],
    /// The token that the identity provider takes next, by sign-in.
    current: [Option<u8>; 4],
    next_generation: u8,
    next_sign_in: u8,
    /// Sign-ins and sign-outs that took effect.
    effects: u8,
    /// A process was killed between an answer and its writing: the renewed token is lost.
    lost: bool,
    /// The entry while somebody asks.
    asked_for: Option<Entry<Token>>,
}

#[derive(Default)]
struct Walk {
    /// The number of ways to an end from each state.
    ways: HashMap<World, u128>,
    steps: u64,
    published: u64,
}

fn generation(number: u8) -> Generation {
    Generation::parse(&format!("{number:032x}")).unwrap()
}

fn identity(person: u8) -> Identity {
    // The account's record is one for all people: the harder case.
    let issuer = Issuer::parse("https://idp.example").unwrap();
    Identity::new(Source::Account, issuer, "c", format!("person-{person}"))
}

impl World {
    /// `signed_in`: person 0 is, and exchanges are pinned to that.
    fn new(tasks: &[&str], signed_in: bool) -> Self {
        let mut world = Self {
            processes: Vec::new(),
            slot: None,
            entry: None,
            holders: [None; 2],
            current: [None; 4],
            next_generation: 0,
            next_sign_in: 0,
            effects: 0,
            lost: false,
            asked_for: None,
        };
        if signed_in {
            world.slot = Some(world.generation());
            let (generation, token) = (world.generation(), world.sign_in(0));
            world.entry = Some(Entry { identity: identity(0), generation, grant: Some(token) });
        }
        for task in tasks {
            let mut task = match *task {
                "sign in" => Task::Begin(0),
                "sign in as another" => Task::Begin(1),
                "sign out" => Task::SignOut(SignOut::new(world.generation(), world.generation())),
                "exchange" => {
                    let Entry { identity, generation, .. } = world.entry.clone().unwrap();
                    Task::Exchange(Exchange::new(Pin { identity, generation }))
                }
                other => panic!("{other}"),
            };
            let state = State::Next(task.next(Came::Done));
            world.processes.push(Process { task, state, followed_by: [false; 3], outdated: false });
        }
        world
    }

    fn generation(&mut self) -> Generation {
        self.next_generation += 1;
        generation(self.next_generation)
    }

    fn sign_in(&mut self, person: u8) -> Token {
        let sign_in = self.next_sign_in;
        self.next_sign_in += 1;
        self.current[usize::from(sign_in)] = Some(0);
        Token { person, sign_in, number: 0, rejected: false }
    }

    fn release(&mut self, process: usize) {
        for holder in &mut self.holders {
            holder.take_if(|holder| *holder == process);
        }
    }

    fn kill(&mut self, process: usize) {
        let Process { task, state, .. } = &self.processes[process];
        match state {
            State::Next(Step::WriteEntry(_)) if matches!(task, Task::Exchange(_)) => {
                self.lost = true;
            }
            State::Asking(_) => self.asked_for = None,
            _ => {}
        }
        self.processes[process].state = State::Killed;
        self.release(process);
    }

    /// What may happen next to a process; nothing while it waits for a lease.
    fn moves(&self, process: usize) -> Vec<Self> {
        let step = match &self.processes[process].state {
            State::Next(step) => step.clone(),
            State::Asking(token) => return self.answers(process, *token),
            State::Killed | State::Ended => return Vec::new(),
        };
        let mut world = self.clone();
        let came = match step {
            Step::Lease(place) => match &mut world.holders[place as usize] {
                Some(_) => return Vec::new(),
                free => {
                    *free = Some(process);
                    if place == Place::Slot {
                        world.start(process);
                    }
                    Came::Done
                }
            },
            Step::ReadSlot => match world.processes[process].task {
                Task::Begin(person) => return vec![world.begun(process, person)],
                _ => Came::Slot(world.slot.clone()),
            },
            Step::WriteSlot(generation) => {
                assert_eq!(world.holders[Place::Slot as usize], Some(process));
                world.slot = Some(generation);
                Came::Done
            }
            Step::ReadEntry => Came::Entry(world.entry.clone()),
            Step::WriteEntry(entry) => {
                world.write(process, entry);
                Came::Done
            }
            Step::Ask(token) => {
                world.ask(process, token);
                return vec![world];
            }
            Step::Release => {
                world.release(process);
                Came::Done
            }
            Step::Redeem => {
                assert!(!world.holders.contains(&Some(process)), "a lease during the redemption");
                let refused = world.fed(process, Came::Redeemed(false));
                return vec![world.fed(process, Came::Redeemed(true)), refused];
            }
            Step::Done(end) => {
                world.end(process, &end);
                return vec![world];
            }
        };
        vec![world.fed(process, came)]
    }

    fn fed(&self, process: usize, came: Came<Token>) -> Self {
        let mut world = self.clone();
        let next = world.processes[process].task.next(came);
        world.processes[process].state = State::Next(next);
        world
    }

    /// The first step of a sign-out.
    fn start(&mut self, process: usize) {
        if !matches!(self.processes[process].task, Task::SignOut(_)) {
            return;
        }
        for other in &mut self.processes {
            other.followed_by[process] |= matches!(other.task, Task::SignIn(_));
        }
    }

    /// The slot was read, and the person signed in at the identity provider.
    fn begun(mut self, process: usize, person: u8) -> Self {
        let grant = Some(self.sign_in(person));
        let entry = Entry { identity: identity(person), generation: self.generation(), grant };
        let next_slot = self.generation();
        let begun = self.slot.clone();
        self.processes[process].task = Task::SignIn(SignIn { begun, entry, next_slot, at: 0 });
        self.fed(process, Came::Done)
    }

    fn write(&mut self, process: usize, entry: Entry<Token>) {
        assert_eq!(self.holders[Place::Entry as usize], Some(process), "a write without a lease");
        let before = self.entry.as_ref();
        let is_other = before.is_none_or(|before| before.generation != entry.generation);
        match &self.processes[process].task {
            Task::Exchange(_) => {
                // Only tokens are renewed: whose sign-in it is, and which, stays.
                let (old, new) = (before.unwrap().grant.unwrap(), entry.grant.unwrap());
                assert_eq!((old.person, old.sign_in), (new.person, new.sign_in));
                assert!(!is_other, "a renewed token is another sign-in");
            }
            Task::SignIn(_) => {
                let outdated = self.processes[process].outdated;
                assert!(!outdated, "a signed-out person is signed in again");
                assert!(is_other);
                self.effects += 1;
            }
            Task::SignOut(_) => {
                assert!(entry.grant.is_none() && is_other);
                self.effects += 1;
            }
            Task::Begin(_) => unreachable!(),
        }
        self.entry = Some(entry);
    }

    fn ask(&mut self, process: usize, token: Token) {
        assert_eq!(self.holders[Place::Entry as usize], Some(process), "asked without a lease");
        assert_eq!(self.asked_for, None, "two ask at the same time");
        // What exchanges are pinned to is the first sign-in, of person 0.
        assert_eq!((token.person, token.sign_in), (0, 0), "somebody else's token is used");
        assert_eq!(self.effects, 0, "asked after a sign-in or sign-out");
        self.asked_for.clone_from(&self.entry);
        self.processes[process].state = State::Asking(token);
    }

    /// What the identity provider may say.
    fn answers(&self, process: usize, token: Token) -> Vec<Self> {
        assert_eq!(self.asked_for, self.entry, "the entry changed while its holder asked");
        let mut world = self.clone();
        world.asked_for = None;
        let slot = usize::from(token.sign_in);
        let answer = |world: &Self, current: Option<u8>, renewed, granted| {
            let mut world = world.clone();
            world.current[slot] = current;
            world.fed(process, Came::Answer { renewed, granted })
        };
        let rejected = Some(Token { rejected: true, ..token });
        let current = world.current[slot];
        if token.rejected || current != Some(token.number) {
            // Used twice: all of it is taken away.
            assert!(token.rejected || world.lost, "a token is used twice without a kill");
            return vec![answer(&world, None, rejected, false)];
        }
        let next = Token { number: token.number + 1, ..token };
        vec![
            answer(&world, current, None, false),
            answer(&world, current, None, true),
            answer(&world, Some(next.number), Some(next), true),
            answer(&world, None, rejected, false),
        ]
    }

    fn end(&mut self, process: usize, end: &End<Token>) {
        self.release(process);
        match end {
            End::SignedOut(_) => {
                // From here on only a sign-in that was begun later signs anybody in.
                for other in &mut self.processes {
                    other.outdated |= other.followed_by[process];
                }
            }
            End::SignedIn(pin) => {
                let Task::SignIn(sign_in) = &self.processes[process].task else { unreachable!() };
                assert_eq!(pin.identity, sign_in.entry.identity);
            }
            End::Overtaken => assert!(self.slot.is_some(), "nobody was faster"),
            End::Published | End::Changed | End::Refused => {}
        }
        self.processes[process].state = State::Ended;
    }

    /// In every state, whatever happened before.
    fn check(&self) {
        let Some(Entry { identity: found, grant: Some(token), .. }) = &self.entry else { return };
        assert_eq!(*found, identity(token.person), "a token under another name");
        let is_idle = self.holders[Place::Entry as usize].is_none();
        if is_idle && !self.lost && !token.rejected {
            let current = self.current[usize::from(token.sign_in)];
            assert_eq!(current, Some(token.number), "a renewed token was lost");
        }
    }

    fn is_over(&self) -> bool {
        let over = |process: &Process| matches!(process.state, State::Killed | State::Ended);
        self.processes.iter().all(over)
    }
}

impl Task {
    fn next(&mut self, came: Came<Token>) -> Step<Token> {
        match self {
            Self::Begin(_) => Step::ReadSlot,
            Self::SignIn(sequence) => sequence.next(came),
            Self::SignOut(sequence) => sequence.next(came),
            Self::Exchange(sequence) => sequence.next(came),
        }
    }
}

impl Walk {
    /// The number of ways from here to an end.
    fn ways(&mut self, world: &World) -> u128 {
        if let Some(ways) = self.ways.get(world) {
            return *ways;
        }
        world.check();
        let (mut ways, mut moved) = (0, false);
        for process in 0..world.processes.len() {
            self.published += u64::from(publishes(world, process));
            for next in world.moves(process) {
                moved = true;
                self.steps += 1;
                ways += self.ways(&next);
            }
            if !matches!(world.processes[process].state, State::Killed | State::Ended) {
                let mut killed = world.clone();
                killed.kill(process);
                self.steps += 1;
                ways += self.ways(&killed);
            }
        }
        assert!(moved || world.is_over(), "nobody can go on: {world:#?}");
        let ways = if moved { ways } else { 1 };
        self.ways.insert(world.clone(), ways);
        ways
    }
}

/// Whether an exchange is at its last look before it uses a token, and finds what it looks for: it
/// has to, when nobody signed in or out since the connection was made, and must not otherwise.
fn publishes(world: &World, process: usize) -> bool {
    let Process { task: Task::Exchange(exchange), state, .. } = &world.processes[process] else {
        return false;
    };
    if !matches!(state, State::Next(Step::ReadEntry)) || !exchange.granted {
        return false;
    }
    let next = world.moves(process).remove(0);
    let good = matches!(next.processes[process].state, State::Next(Step::Done(End::Published)));
    assert_eq!(good, world.effects == 0, "published after a sign-in or sign-out, or not without");
    good
}

fn walk(tasks: &[&str], signed_in: bool) -> (usize, u128) {
    let mut walk = Walk::default();
    let ways = walk.ways(&World::new(tasks, signed_in));
    println!(
        "{:<60} {:>8} states {:>9} steps {:>26} interleavings",
        format!("signed {} {tasks:?}", if signed_in { "in " } else { "out" }),
        walk.ways.len(),
        walk.steps,
        ways
    );
    let reaches = walk.published > 0;
    assert_eq!(reaches, tasks.contains(&"exchange"), "the walk reaches what it is about");
    (walk.ways.len(), ways)
}

#[test]
fn every_interleaving_with_a_kill_at_every_step_keeps_the_pins() {
    let all = ["sign in", "sign in as another", "sign out", "exchange"];
    let (mut states, mut interleavings) = (0, 0_u128);
    let mut add = |tasks: &[&str], signed_in: bool| {
        let (more_states, more) = walk(tasks, signed_in);
        states += more_states;
        interleavings += more;
    };
    for one in all {
        for other in all {
            add(&[one, other], true);
            if one != "exchange" && other != "exchange" {
                add(&[one, other], false);
            }
        }
    }
    for third in ["sign in", "sign out", "exchange"] {
        add(&["exchange", "sign out", third], true);
    }
    println!("{states} states, {interleavings} interleavings");
    assert!(interleavings > 1_000_000, "{interleavings}");
}

/// The checks can fail: a sign-in that does not look at the slot brings somebody back.
#[test]
#[should_panic(expected = "a signed-out person is signed in again")]
fn the_model_finds_a_sign_in_that_does_not_look() {
    let mut world = World::new(&["sign in", "sign out"], true);
    let go = |world: &mut World, process: usize| *world = world.moves(process).remove(0);
    go(&mut world, 0);
    while world.processes[1].state != State::Ended {
        go(&mut world, 1);
    }
    let slot = world.slot.clone();
    let Task::SignIn(sign_in) = &mut world.processes[0].task else { panic!("a sign-in") };
    sign_in.begun = slot;
    while world.processes[0].state != State::Ended {
        go(&mut world, 0);
    }
}
