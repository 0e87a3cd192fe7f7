//! A task as text, to be kept.

use std::time::Duration;

use plenipo_wire::{Fragment, ViewError, WireError, object};

use super::Task;
use crate::error::TaskFault;

impl Task {
    /// Everything about it as a JSON object. It holds no result and no credential.
    #[must_use]
    pub fn to_record(&self) -> Fragment {
        let answered: Vec<_> = self.answered.iter().map(|key| Fragment::string(key)).collect();
        Fragment::object(|object| {
            object.string("taskId", &self.id);
            object.string("tool", &self.tool);
            object.string("authority", &self.authority);
            object.array("answered", &answered);
            if let Some(pace) = self.pace {
                object.integer("paceMs", i64::try_from(pace.as_millis()).unwrap_or(i64::MAX));
            }
        })
    }

    /// What [`to_record`](Self::to_record) wrote.
    ///
    /// # Errors
    /// [`TaskFault::Record`] when the text is anything else.
    pub fn from_record(text: &str) -> Result<Self, TaskFault> {
        let record = Fragment::parse_object(text).map_err(TaskFault::from)?;
        let names = ["taskId", "tool", "authority", "answered", "paceMs"];
        let found = object::select(record.as_raw(), names).unwrap_or_default();
        let [id, tool, authority, answered, pace] = found;
        let words = answered.and_then(object::items).ok_or(TaskFault::Record)?;
        let answered = words.into_iter().map(|key| Some(object::text(key)?.into_owned()));
        let text = |raw: Option<&plenipo_wire::RawValue>| {
            raw.and_then(object::text).map(std::borrow::Cow::into_owned).ok_or(TaskFault::Record)
        };
        let milliseconds = pace.and_then(object::integer).and_then(|ms| u64::try_from(ms).ok());
        Ok(Self {
            id: text(id)?,
            tool: text(tool)?,
            authority: text(authority)?,
            captured: None,
            answered: answered.collect::<Option<_>>().ok_or(TaskFault::Record)?,
            pace: milliseconds.map(Duration::from_millis),
            is_fresh: false,
        })
    }
}

impl From<WireError> for TaskFault {
    fn from(_: WireError) -> Self {
        Self::Record
    }
}

impl From<ViewError> for TaskFault {
    fn from(_: ViewError) -> Self {
        Self::Record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_and_nothing_else() {
        let task = Task {
            id: "a\"\n".to_owned(),
            tool: "build".to_owned(),
            authority: "0f".to_owned(),
            captured: None,
            answered: ["x".to_owned(), "y".to_owned()].into(),
            pace: Some(Duration::from_millis(250)),
            is_fresh: false,
        };
        let record = task.to_record();
        assert_eq!(Task::from_record(record.as_str()).unwrap().to_record(), record);
        assert!(record.as_str().contains(r#""answered":["x","y"],"paceMs":250"#));
        for bad in ["", "[]", "{}", r#"{"taskId":"t","tool":"b","authority":"a","answered":[1]}"#] {
            assert!(Task::from_record(bad).is_err(), "{bad}");
        }
    }
}
