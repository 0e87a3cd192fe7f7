//! Skills that a server publishes (`io.modelcontextprotocol/skills`, SEP-2640).
//!
//! Nothing of a skill is fetched before it is loaded, and nothing is given out that is not what its
//! entry says. That proves that a server agrees with itself, no more: a skill is untrusted text, its
//! name is a label, and which server it is from belongs to its identity. Asking a person first, and
//! telling the model whose skill it is, are for the host.

mod frontmatter;
mod verify;

use plenipo_wire::encode::ObjectWriter;
use plenipo_wire::protocol::{extensions, methods};
use plenipo_wire::views::SkillView;
use plenipo_wire::{Fragment, RawValue, ViewError, object};

use crate::connection::Connection;
use crate::error::{ConnectError, Fault, Operation};
use crate::paging::{Entry, Listed};
use crate::peer::RequestFault;
use crate::request::{Ask, RequestOptions};

pub use crate::error::SkillFault;

/// A skill's entry: everything about it but its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    uri: String,
    raw: Fragment,
}

/// A skill whose `SKILL.md` was read and is what the entry says. It stands for the time in which a
/// host acts on the skill: files are read under the entry it was loaded from.
#[derive(Debug, Clone)]
pub struct LoadedSkill {
    skill: Skill,
    text: String,
}

impl Skill {
    /// Of its `SKILL.md`. Names the skill within its server, and only there.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The whole entry, unknown members included.
    #[must_use]
    pub fn raw(&self) -> &Fragment {
        &self.raw
    }

    /// A view of the entry.
    ///
    /// # Errors
    /// None in practice: it was read once before.
    pub fn view(&self) -> Result<SkillView<'_>, ViewError> {
        SkillView::from_raw(self.raw.as_raw())
    }
}

impl Entry for Skill {
    const METHOD: &'static str = methods::SKILLS_LIST;
    const MEMBER: &'static str = "skills";
    const CAPABILITY: &'static str = extensions::SKILLS;

    fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let uri = SkillView::from_raw(raw)?.uri.into_owned();
        Ok(Self { uri, raw: Fragment::from_raw(raw) })
    }
}

impl LoadedSkill {
    /// The entry that is held.
    #[must_use]
    pub fn skill(&self) -> &Skill {
        &self.skill
    }

    /// `SKILL.md`, frontmatter included. Untrusted: `allowed-tools` and the like grant nothing.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The URI of a path that the skill refers to, from the directory of its `SKILL.md`; `None` when
    /// it leads out of there.
    ///
    /// ```no_run
    /// # fn f(loaded: &plenipo_connect::LoadedSkill) {
    /// // skill://pdf/SKILL.md
    /// assert_eq!(loaded.resolve("./references/FORMS.md").unwrap(), "skill://pdf/references/FORMS.md");
    /// assert_eq!(loaded.resolve("../other/SKILL.md"), None);
    /// # }
    /// ```
    #[must_use]
    pub fn resolve(&self, path: &str) -> Option<String> {
        verify::resolve(&self.skill.uri, path)
    }
}

impl Connection {
    /// The skills that the server lists; perhaps not all that it has. None of a server without the
    /// extension.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`].
    pub async fn skills(&self, options: &RequestOptions) -> Result<Listed<Skill>, ConnectError> {
        self.list_all(options).await
    }

    /// The entry of one skill, listed or not; also the way to the current entry of a skill that
    /// changed.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`]; [`Fault::NotOffered`] of a server without the
    /// extension.
    pub async fn skill(&self, uri: &str, options: &RequestOptions) -> Result<Skill, ConnectError> {
        let method = methods::SKILLS_GET;
        if !self.offers(extensions::SKILLS) {
            return Err(self.not_offered(method, Some(uri), extensions::SKILLS));
        }
        let params = |params: &mut ObjectWriter<'_>| params.string("uri", uri);
        let ask = Ask { method, subject: Some(uri), params: &params, options };
        let skill = self.ask(ask, |result| {
            let nothing = RawValue::NULL;
            Skill::read(object::member(&result, "skill").unwrap_or(nothing))
        });
        let skill = skill.await?;
        if skill.uri != uri {
            let fault = SkillFault::Entry { reason: "it is another skill's" };
            return Err(self.skill_error(method, uri, fault));
        }
        Ok(skill)
    }

    /// Reads a skill's `SKILL.md`, after a person agreed to the entry.
    ///
    /// ```no_run
    /// # use plenipo_connect::{Connection, RequestOptions};
    /// # async fn f(connection: &Connection) -> Result<(), plenipo_connect::ConnectError> {
    /// let options = RequestOptions::default();
    /// let skill = connection.skill("skill://pdf/SKILL.md", &options).await?;
    /// let loaded = connection.load_skill(&skill, &options).await?;
    /// println!("{}", loaded.text());
    /// let forms = connection.read_skill_file(&loaded, "skill://pdf/FORMS.md", &options).await?;
    /// println!("{} bytes", forms.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`]; [`Fault::Skill`] when the entry breaks a rule or
    /// a limit (512 files, 16 MiB), is dynamic, or when what was read is not what it says.
    pub async fn load_skill(
        &self,
        skill: &Skill,
        options: &RequestOptions,
    ) -> Result<LoadedSkill, ConnectError> {
        let method = methods::RESOURCES_READ;
        let checked = verify::entry(skill);
        checked.map_err(|fault| self.skill_error(method, &skill.uri, fault))?;
        let bytes = self.verified(skill, &skill.uri, options).await?;
        let text = String::from_utf8(bytes)
            .map_err(|_| SkillFault::Frontmatter { reason: "it is not UTF-8".to_owned() });
        let text = text.and_then(|text| frontmatter::check(skill, &text).map(|()| text));
        let text = text.map_err(|fault| self.skill_error(method, &skill.uri, fault))?;
        Ok(LoadedSkill { skill: skill.clone(), text })
    }

    /// Reads a file of a loaded skill, as far as the entry lists it.
    ///
    /// # Errors
    /// As [`load_skill`](Self::load_skill).
    pub async fn read_skill_file(
        &self,
        loaded: &LoadedSkill,
        uri: &str,
        options: &RequestOptions,
    ) -> Result<Vec<u8>, ConnectError> {
        self.verified(&loaded.skill, uri, options).await
    }

    async fn verified(
        &self,
        skill: &Skill,
        uri: &str,
        options: &RequestOptions,
    ) -> Result<Vec<u8>, ConnectError> {
        let error = |fault| self.skill_error(methods::RESOURCES_READ, uri, fault);
        let listed = verify::listed(skill, uri).map_err(error)?;
        let read = self.read_resource(uri, options).await?;
        verify::bytes(read.result(), uri, &listed).map_err(error)
    }

    fn skill_error(&self, method: &'static str, uri: &str, fault: SkillFault) -> ConnectError {
        let operation = Operation::Request { method, subject: Some(uri.to_owned()) };
        self.error(operation, RequestFault::Fault(Fault::Skill(fault)))
    }
}
