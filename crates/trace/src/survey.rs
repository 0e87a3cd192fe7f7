//! The records of one run, each once.

use std::collections::BTreeSet;

use crate::Record;

/// What a run touched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    records: BTreeSet<Record>,
}

impl Survey {
    /// Adds a record; gives back one that is new. Beyond 100,000 there is one more, [`Record::Incomplete`].
    pub fn add(&mut self, record: Record) -> Option<&Record> {
        let record = if self.records.len() < Record::MOST { record } else { Record::Incomplete };
        if self.records.contains(&record) {
            return None;
        }
        self.records.insert(record.clone());
        self.records.get(&record)
    }

    /// All of them, owned.
    pub(crate) fn into_records(self) -> impl Iterator<Item = Record> {
        self.records.into_iter()
    }

    /// All of them.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    /// Whether more was touched than is told.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.records.contains(&Record::Incomplete)
    }
}

impl FromIterator<Record> for Survey {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Self {
        let mut survey = Self::default();
        for record in records {
            survey.add(record);
        }
        survey
    }
}
