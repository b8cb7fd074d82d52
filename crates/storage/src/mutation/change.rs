//! Changes in a commit.

use arrow_array::RecordBatch;

use crate::mutation::delete::Delete;
use crate::mutation::retire::PartitionAction;
use crate::mutation::update::Update;
use crate::snapshot::Snapshot;
use crate::table::records::{FOLLOWED_RECORDS, TOUCHED_RECORDS};
use crate::table::schema::{TableId, TableSchema};
use crate::table::time_range::TimeRange;

/// One change in a commit. All changes in a commit are applied in order, together or not at all.
#[derive(Debug, Clone)]
pub enum Change {
    /// Creates a table. Identifier 0 requests a new identifier, for the table and for its columns.
    CreateTable(TableSchema),
    /// Removes a table.
    DropTable(TableId),
    /// A new definition: columns added, dropped or renamed, the table renamed, or parameters
    /// changed. Its `version` is that of the old definition, on which the new definition is based.
    /// Columns with identifier 0 are new, and null in existing rows. A column's type cannot change
    /// under the same identifier.
    ReplaceSchema(TableSchema),
    /// Removes all of a table's rows.
    Truncate(TableId),
    /// Drops, detaches or attaches whole partitions, without opening their files.
    Partitions {
        /// The table.
        table: TableId,
        /// Action on the partitions.
        action: PartitionAction,
        /// Start timestamps of the partitions, as in
        /// [`PartitionInfo::floor`](crate::PartitionInfo).
        floors: Vec<i64>,
    },
    /// New cells for existing rows.
    Update(Update),
    /// Deletes rows.
    Delete(Delete),
    /// Deletes rows by time. The deletion affects all rows that exist when the commit is applied.
    Clear {
        /// A table with a designated timestamp.
        table: TableId,
        /// Ascending and disjoint.
        ranges: Vec<TimeRange>,
    },
    /// Starts recording which time ranges of a table are touched
    /// ([`Snapshot::touched`](crate::Snapshot::touched)), until the table is dropped. Forgets
    /// ranges that no transaction after `through` touched.
    Watch {
        /// A table with a designated timestamp.
        table: TableId,
        /// Forgets all ranges up to this transaction; 0 retains all of them.
        through: u64,
    },
    /// Starts retaining the data that a table's change feeds report
    /// ([`Storage::next_change`](crate::Storage::next_change)), until the table is dropped or
    /// unfollowed ([`Change::unfollow`]). Has no effect on a table that is already followed.
    Follow(TableId),
    /// Fails the commit with `Replan` if a record differs from the expected value.
    Expect {
        /// Record kind.
        kind: String,
        /// Record name within its kind.
        key: String,
        /// Expected bytes; `None` if the record must not exist.
        value: Option<Vec<u8>>,
    },
    /// Adds rows.
    Append {
        /// The table.
        table: TableId,
        /// Version of the definition that the batch was built for.
        schema_version: u64,
        /// Columns with the order and types of the definition; rows in any order.
        batch: RecordBatch,
    },
    /// Sets a durable record.
    PutRecord {
        /// Record kind: `view`, `user`, `setting`.
        kind: String,
        /// Record name within its kind.
        key: String,
        /// Record content.
        value: Vec<u8>,
    },
    /// Removes a durable record, if it exists.
    DeleteRecord {
        /// Record kind.
        kind: String,
        /// Record name within its kind.
        key: String,
    },
}

impl Change {
    /// Ends [`Change::Follow`].
    #[must_use]
    pub fn unfollow(table: TableId) -> Self {
        Self::DeleteRecord { kind: FOLLOWED_RECORDS.to_owned(), key: table.to_string() }
    }

    /// Fails the commit with `Replan` if a watched table was touched after the snapshot.
    #[must_use]
    pub fn expect_untouched(snapshot: &Snapshot, table: TableId) -> Self {
        let value = snapshot.touched_record(table).map(<[u8]>::to_vec);
        Self::Expect { kind: TOUCHED_RECORDS.to_owned(), key: table.to_string(), value }
    }

    /// Ends [`Change::Watch`].
    #[must_use]
    pub fn unwatch(table: TableId) -> Self {
        Self::DeleteRecord { kind: TOUCHED_RECORDS.to_owned(), key: table.to_string() }
    }
}

/// Target of a bulk write.
#[derive(Debug, Clone)]
pub enum BulkTarget {
    /// Adds rows to this table.
    Existing(TableId),
    /// Creates the table together with its rows. Fails at the end if the name has been taken in the
    /// meantime.
    Create(TableSchema),
    /// Creates the table together with its rows, and replaces another table.
    Replace {
        /// The table to replace.
        old: TableId,
        /// The new table, usually with the same name.
        schema: TableSchema,
    },
}

/// A successful commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitReceipt {
    /// Transaction number in the log.
    pub lsn: u64,
    /// First snapshot epoch in which the commit is visible.
    pub epoch: u64,
}
