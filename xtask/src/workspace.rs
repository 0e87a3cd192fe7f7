//! What `cargo metadata` says about this workspace.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::run::{Doing, Failure, Outcome, cargo, output};

/// The workspace: where it is and what it is made of.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One package with what it declares.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) version: String,
    manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    #[serde(default)]
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
}

/// A declared dependency; `kind` is `None` for a normal one, else `dev` or `build`.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Option<String>,
}

impl Workspace {
    pub(crate) fn load() -> Outcome<Self> {
        // What cargo says now, not what it said when this was built: a target directory may be
        // shared by several clones.
        let here = std::env::var_os("CARGO_MANIFEST_DIR");
        let here = here.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let text = output(cargo(&here).args(["metadata", "--format-version=1", "--no-deps"]))?;
        let mut workspace: Self = serde_json::from_str(&text)
            .map_err(|error| Failure::new(format!("read `cargo metadata`: {error}")))?;
        workspace.packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(workspace)
    }

    /// A path as seen from the root, for people.
    pub(crate) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

impl Package {
    /// The name without the prefix that crates.io needs; the binary's package is `cli`.
    pub(crate) fn short_name(&self) -> &str {
        match self.name.as_str() {
            "plenipo" => "cli",
            name => name.strip_prefix("plenipo-").unwrap_or(name),
        }
    }

    pub(crate) fn has_library(&self) -> bool {
        self.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "lib"))
    }

    pub(crate) fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }

    /// Every Rust file below the package, sorted; build output excepted.
    pub(crate) fn rust_files(&self) -> Outcome<Vec<PathBuf>> {
        let mut files = Vec::new();
        collect(self.directory(), &mut files)?;
        files.sort();
        Ok(files)
    }

    pub(crate) fn depends_on(&self, kind: Option<&str>) -> impl Iterator<Item = &str> {
        let wanted = move |dependency: &&Dependency| dependency.kind.as_deref() == kind;
        self.dependencies.iter().filter(wanted).map(|dependency| dependency.name.as_str())
    }
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    let what = format!("list {}", directory.display());
    for entry in fs::read_dir(directory).doing(&what)? {
        let path = entry.doing(&what)?.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
