//! Everything committed up to one moment. Immutable; sharing all that did not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidemark_types::identifier;

use crate::table::TableSnapshot;
use crate::table::pins::Pins;
use crate::table::schema::TableId;
use crate::table::sharded::ShardedMap;

type Records = BTreeMap<String, Arc<BTreeMap<String, Arc<[u8]>>>>;

/// Everything committed up to one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub(crate) epoch: u64,
    /// The last transaction it shows.
    pub(crate) lsn: u64,
    /// The identifier the next table gets, at least.
    pub(crate) next_table: TableId,
    pub(crate) tables: ShardedMap<TableId, Arc<TableSnapshot>>,
    pub(crate) names: ShardedMap<String, TableId>,
    pub(crate) records: Arc<Records>,
    pub(crate) pins: Arc<Pins>,
}

impl Snapshot {
    /// Rises with every published commit.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The last transaction this snapshot shows.
    pub fn lsn(&self) -> u64 {
        self.lsn
    }

    /// The table with this name, letter case ignored.
    pub fn table(&self, name: &str) -> Option<Arc<TableSnapshot>> {
        self.table_by_id(*self.names.get(identifier::fold(name).as_str())?)
    }

    /// The table with this identifier.
    pub fn table_by_id(&self, id: TableId) -> Option<Arc<TableSnapshot>> {
        self.tables.get(&id).map(Arc::clone)
    }

    /// All tables, in no order.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableSnapshot>> {
        self.tables.iter().map(|(_, table)| table)
    }

    /// A durable record.
    pub fn record(&self, kind: &str, key: &str) -> Option<&[u8]> {
        self.records.get(kind)?.get(key).map(AsRef::as_ref)
    }

    /// All records of a kind, by key.
    pub fn records(&self, kind: &str) -> impl Iterator<Item = (&str, &[u8])> {
        let records = self.records.get(kind);
        records.into_iter().flat_map(|r| r.iter()).map(|(key, value)| (key.as_str(), &**value))
    }

    pub(crate) fn put_record(&mut self, kind: &str, key: &str, value: Arc<[u8]>) {
        let kinds = Arc::make_mut(&mut self.records);
        let records = kinds.entry(kind.to_owned()).or_default();
        Arc::make_mut(records).insert(key.to_owned(), value);
    }

    pub(crate) fn delete_record(&mut self, kind: &str, key: &str) {
        let kinds = Arc::make_mut(&mut self.records);
        if let Some(records) = kinds.get_mut(kind) {
            Arc::make_mut(records).remove(key);
            if records.is_empty() {
                kinds.remove(kind);
            }
        }
    }
}
