//! A small fuzzer for the stable toolchain: a corpus, a mutator, a time budget.
//!
//! As a plain test it runs the corpus and a fixed number of mutations from a fixed seed, so it is a unit test that always
//! does the same. With `PLENIPO_FUZZ_SECONDS=N` it goes on for N seconds from a new seed (`PLENIPO_FUZZ_SEED` repeats one).
//! What a check returns tells inputs apart (the kind of an error, the shape of a result); one that gives something new is
//! mutated further. An input that fails is written below `target/fuzz`; once fixed it belongs into the corpus.

#![expect(clippy::print_stderr, reason = "what a long run did is for the person who waits for it")]
#![expect(clippy::indexing_slicing, reason = "places are picked within bounds")]

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Mutations of a plain test run.
const ROUNDS: usize = 2000;
/// Longest input that is made.
const MAX_BYTES: usize = 16 * 1024;
const FIXED_SEED: u64 = 0x5EED;

/// One fuzz target.
#[derive(Debug)]
pub struct Fuzz {
    name: String,
    pool: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
    rounds: usize,
}

impl Fuzz {
    /// A target whose corpus is every file in `directory`, named after it. `words` are put into inputs as they are: what
    /// chance would not spell.
    ///
    /// # Panics
    /// There is no corpus.
    pub fn of(directory: &Path, words: &[&str]) -> Self {
        let name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
        let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
            .expect("a corpus directory")
            .map(|entry| entry.expect("an entry of it").path())
            .collect();
        files.sort();
        let pool: Vec<Vec<u8>> =
            files.iter().map(|file| std::fs::read(file).expect("a file of the corpus")).collect();
        assert!(!pool.is_empty(), "the corpus {} is empty", directory.display());
        let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Self { name: name.unwrap_or_default(), pool, words, rounds: ROUNDS }
    }

    /// Another number of mutations in a plain test run than 2,000.
    #[must_use]
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds;
        self
    }

    /// Runs `check`, which panics if an input shows a fault, on the corpus and on mutations of it.
    ///
    /// # Panics
    /// With the check's own panic, after the input was written to a file.
    pub fn run<S: Hash>(mut self, check: impl Fn(&[u8]) -> S) {
        let seconds = std::env::var("PLENIPO_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
        let seed = std::env::var("PLENIPO_FUZZ_SEED").ok().and_then(|text| text.parse().ok());
        let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let seed = seed.unwrap_or_else(|| if until.is_some() { new_seed() } else { FIXED_SEED });
        let mut chance = Chance(seed | 1);
        let mut seen = BTreeSet::new();
        for input in &self.pool {
            seen.insert(self.judge(input, &check));
        }
        let mut rounds = 0;
        while until.map_or(rounds < self.rounds, |until| Instant::now() < until) {
            rounds += 1;
            let input = self.mutated(&mut chance);
            if seen.insert(self.judge(&input, &check)) {
                self.pool.push(input);
            }
        }
        if until.is_some() {
            eprintln!("{}: {rounds} inputs, {} outcomes, seed {seed}", self.name, seen.len());
        }
    }

    fn judge<S: Hash>(&self, input: &[u8], check: &impl Fn(&[u8]) -> S) -> u64 {
        match catch_unwind(AssertUnwindSafe(|| check(input))) {
            Ok(outcome) => hash(&outcome),
            Err(panic) => {
                let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fuzz");
                let file = directory.join(format!("{}-{:016x}", self.name, hash(&input)));
                std::fs::create_dir_all(&directory).expect("target/fuzz");
                std::fs::write(&file, input).expect("the failing input is kept");
                eprintln!("{}: {:?} fails; kept in {}", self.name, text(input), file.display());
                resume_unwind(panic)
            }
        }
    }

    fn mutated(&self, chance: &mut Chance) -> Vec<u8> {
        let mut input = chance.of(&self.pool).cloned().unwrap_or_default();
        for _ in 0..=chance.below(4) {
            self.mutate(&mut input, chance);
        }
        input.truncate(MAX_BYTES);
        input
    }

    fn mutate(&self, input: &mut Vec<u8>, chance: &mut Chance) {
        let at = chance.below(input.len() + 1);
        let reach = 1 << chance.below(9);
        let end = (at + chance.below(reach)).min(input.len());
        match chance.below(8) {
            0 if at < input.len() => input[at] ^= 1 << chance.below(8),
            1 => input.insert(at, chance.byte()),
            2 => drop(input.drain(at..end)),
            3 => {
                let copy = input[at..end].to_vec();
                let to = chance.below(input.len() + 1);
                input.splice(to..to, copy);
            }
            4 | 5 => {
                let word = chance.of(&self.words).cloned().unwrap_or_default();
                input.splice(at..at, word);
            }
            6 => {
                let word = chance.of(&self.words).cloned().unwrap_or_default();
                input.splice(at..end, word);
            }
            _ => {
                let other = chance.of(&self.pool).cloned().unwrap_or_default();
                let from = chance.below(other.len() + 1);
                input.splice(at..end, other[from..].iter().copied());
            }
        }
    }
}

/// An input taken as a row of decisions, for targets that build something: once it is used up, every answer is 0.
#[derive(Debug)]
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    /// Decisions by these bytes.
    pub fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number below `limit` (at most 256), by one byte.
    pub fn below(&mut self, limit: usize) -> usize {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        usize::from(*first) % limit.max(1)
    }

    /// A number of any size, by eight bytes.
    pub fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | self.below(256) as u64)
    }
}

/// xorshift64*: repeatable, and good enough to pick places.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next()).unwrap_or(0) % limit.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let index = self.below(all.len());
        all.get(index)
    }
}

fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map(|since| since.as_secs() << 20 | u64::from(since.subsec_micros())).unwrap_or(FIXED_SEED)
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input.get(..200).unwrap_or(input)).into_owned()
}
