//! Where secrets are: places of a home directory and of the system, names that say it anywhere, and files of keys.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Below a home directory: keys, tokens, and what browsers and shells remember.
const OF_HOME: [&str; 38] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".terraform.d",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/git/credentials",
    ".config/pip/pip.conf",
    ".config/containers/auth.json",
    ".local/share/keyrings",
    ".local/share/plenipo",
    ".password-store",
    ".codex",
    ".claude",
    ".claude.json",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
];
const OF_SYSTEM: [&str; 9] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/security/opasswd",
    "/etc/NetworkManager/system-connections",
];
/// Directories, of whomever.
const DIRECTORIES: [&str; 6] = [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store"];
const FILES: [&str; 15] = [
    ".env",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".vault-token",
    ".htpasswd",
    "credentials.json",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
];
/// `.env.local` is one; these show what to put there.
const EXAMPLES: [&str; 5] = ["example", "sample", "template", "dist", "defaults"];
const STORES: [&str; 5] = ["p12", "pfx", "kdbx", "keytab", "ppk"];
/// How much of a file is looked at; a bundle of all authorities takes a third of that.
const MOST_BYTES: u64 = 1024 * 1024;
/// Kinds of their own, and what everybody may read.
const NOT_SEARCHED: [&str; 9] =
    ["/proc", "/sys", "/dev", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store"];
/// Directory entries that are looked at for one proposal.
const MOST_ENTRIES: usize = 300_000;
/// Secrets that one proposal denies.
const MOST_SECRETS: usize = 256;

/// The secret that the path is or is in.
pub(crate) fn around(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    if let Some(known) = known(home).find(|known| path.starts_with(known)) {
        return Some(known);
    }
    let is_one =
        |place: &&Path| place.file_name().is_some_and(|it| is_directory_of(&it.to_string_lossy()));
    let directory = path.ancestors().filter(is_one).last();
    directory.or_else(|| is_secret(path).then_some(path)).map(Path::to_path_buf)
}

/// Those at known places that are there, in a directory, and that this user can read.
pub(crate) fn known_in(directory: &Path, home: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    known(home).filter(move |secret| secret.starts_with(directory) && is_to_be_had(secret))
}

fn known(home: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    let of_home = home.into_iter().flat_map(|home| OF_HOME.iter().map(|it| home.join(it)));
    of_home.chain(OF_SYSTEM.iter().map(PathBuf::from))
}

fn is_directory_of(name: &str) -> bool {
    DIRECTORIES.contains(&name)
}

/// Whether a file or directory is a secret by its name, or by its name and what is in it.
pub(crate) fn is_secret(path: &Path) -> bool {
    let Some(name) = path.file_name().map(|name| name.to_string_lossy()) else { return false };
    let extension = path.extension().map(|it| it.to_string_lossy()).unwrap_or_default();
    if is_directory_of(&name) {
        return true;
    }
    let variant = name.strip_prefix(".env.");
    if FILES.contains(&name.as_ref()) || variant.is_some_and(|it| !EXAMPLES.contains(&it)) {
        // A virtual environment of Python may be called so.
        return !path.is_dir();
    }
    match extension.as_ref() {
        "pem" | "key" | "p8" => path.is_file() && !is_public(path),
        extension if STORES.contains(&extension) => path.is_file(),
        _ => name.ends_with("_key") && path.is_file() && holds(path, &[PRIVATE]),
    }
}

const PRIVATE: &str = "PRIVATE KEY-----";

/// Certificates and public keys, and no private one.
fn is_public(path: &Path) -> bool {
    let public =
        ["-----BEGIN CERTIFICATE", "-----BEGIN TRUSTED", "PUBLIC KEY-----", "-----BEGIN X509"];
    holds(path, &public) && !holds(path, &[PRIVATE])
}

/// Whether one of the words is in the file. One that is too long to say may have each.
fn holds(path: &Path, words: &[&str]) -> bool {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut text));
    let is_whole = read.is_ok_and(|length| u64::try_from(length).is_ok_and(|it| it < MOST_BYTES));
    let text = String::from_utf8_lossy(&text);
    words.iter().any(|word| text.contains(word)) || (!is_whole && words.contains(&PRIVATE))
}

/// Whether the file is there and this user can read it, or could after a chmod(2).
fn is_to_be_had(path: &Path) -> bool {
    access(path, Access::READ_OK).is_ok() || is_own(path)
}

fn is_own(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.uid() == rustix::process::geteuid().as_raw())
}

/// A search through what is granted, which ends at some size.
#[derive(Debug)]
pub(crate) struct Search {
    entries: usize,
    pub(crate) found: BTreeSet<PathBuf>,
}

impl Default for Search {
    fn default() -> Self {
        Self { entries: MOST_ENTRIES, found: BTreeSet::new() }
    }
}

impl Search {
    #[cfg(test)]
    pub(crate) fn of_entries(entries: usize) -> Self {
        Self { entries, ..Self::default() }
    }

    /// Looks for secrets in the directory, what is near first; links are not followed. Whether it saw everything.
    pub(crate) fn below(&mut self, place: &Path) -> bool {
        let mut waiting = VecDeque::from([place.to_path_buf()]);
        let mut is_whole = true;
        while let Some(directory) = waiting.pop_front() {
            let Ok(entries) = std::fs::read_dir(&directory) else {
                is_whole &= !(directory.is_dir() && is_own(&directory));
                continue;
            };
            for entry in entries {
                let Ok(entry) = entry else {
                    is_whole = false;
                    break;
                };
                if self.entries == 0 || self.found.len() >= MOST_SECRETS {
                    return false;
                }
                self.entries -= 1;
                let path = entry.path();
                if is_secret(&path) {
                    if is_to_be_had(&path) {
                        self.found.insert(path);
                    }
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir())
                    && !NOT_SEARCHED.iter().any(|not| path == Path::new(not))
                {
                    waiting.push_back(path);
                }
            }
        }
        is_whole
    }
}

#[cfg(test)]
mod tests {
    use plenipo_testkit::Fixture;

    use super::*;

    #[test]
    fn a_search_finds_secrets_by_name_and_keys_by_what_they_are_and_says_when_it_ended_early() {
        let place = Fixture::new();
        let private = "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n";
        let certificate = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";
        for (file, text) in [
            (".env", "x"),
            (".npmrc", "x"),
            ("sub/.env", "x"),
            ("sub/.env.local", "x"),
            ("sub/deep/er/id_rsa", "x"),
            ("server.pem", private),
            ("odd.pem", "x"),
            ("host_key", private),
            ("other/.ssh/whatever", "x"),
        ] {
            place.file(file, text);
        }
        let secrets: BTreeSet<_> = [
            ".env",
            ".npmrc",
            "sub/.env",
            "sub/.env.local",
            "sub/deep/er/id_rsa",
            "server.pem",
            "odd.pem",
            "host_key",
            "other/.ssh",
        ]
        .map(|it| place.join(it))
        .into();
        place.file("cacert.pem", certificate);
        place.file("primary_key", "x");
        place.file(".env.example", "x");
        place.file("venv/.env/pyvenv.cfg", "x");
        let mut search = Search::default();
        assert!(search.below(place.path()));
        assert_eq!(search.found, secrets);
        assert!(!Search::of_entries(5).below(place.path()), "there is more");
    }
}
