//! What a commit changes.

use arrow_array::RecordBatch;

use crate::mutation::delete::Delete;
use crate::mutation::retire::PartitionAction;
use crate::mutation::update::Update;
use crate::snapshot::Snapshot;
use crate::table::records::{FOLLOWED_RECORDS, TOUCHED_RECORDS};
use crate::table::schema::{TableId, TableSchema};
use crate::table::time_range::TimeRange;

/// One change of a commit. All changes of a commit happen together or not at all, in order.
#[derive(Debug, Clone)]
pub enum Change {
    /// A new table. Identifier 0 asks for a new one; column identifiers 0 likewise.
    CreateTable(TableSchema),
    /// Removes a table.
    DropTable(TableId),
    /// A new definition: columns added, dropped, renamed, the table renamed, parameters. Its
    /// `version` is the version it was made from; columns with identifier 0 are new, and null in
    /// the rows that exist. A column's type cannot change under the same identifier.
    ReplaceSchema(TableSchema),
    /// Removes all rows of a table.
    Truncate(TableId),
    /// Drops, detaches or attaches whole partitions, without opening their files.
    Partitions {
        /// The table.
        table: TableId,
        /// What happens to them.
        action: PartitionAction,
        /// Their first instants, as [`PartitionInfo::floor`](crate::PartitionInfo) has them.
        floors: Vec<i64>,
    },
    /// New cells for rows that exist.
    Update(Update),
    /// Rows that go.
    Delete(Delete),
    /// Rows that go by their time, whatever rows there are when the commit has its turn.
    Clear {
        /// A table with a designated timestamp.
        table: TableId,
        /// Ascending and apart from each other.
        ranges: Vec<TimeRange>,
    },
    /// Keeps from now on which stretches of time of a table are touched
    /// ([`Snapshot::touched`](crate::Snapshot::touched)), until the table is dropped; forgets those
    /// that no transaction after `through` touched.
    Watch {
        /// A table with a designated timestamp.
        table: TableId,
        /// A transaction; 0 forgets nothing.
        through: u64,
    },
    /// Keeps from now on what feeds of a table's changes tell
    /// ([`Storage::next_change`](crate::Storage::next_change)), until the table is dropped or
    /// [`Change::unfollow`]. Without effect on a table that is followed.
    Follow(TableId),
    /// Lets the commit fail with `Replan` where a record is not what it was.
    Expect {
        /// What the record is.
        kind: String,
        /// Its name within its kind.
        key: String,
        /// Its bytes; `None` where there was none.
        value: Option<Vec<u8>>,
    },
    /// Adds rows.
    Append {
        /// The table.
        table: TableId,
        /// The definition's version the batch was built for.
        schema_version: u64,
        /// The columns in the definition's order and of its types; the rows in any order.
        batch: RecordBatch,
    },
    /// Sets a durable record.
    PutRecord {
        /// What the record is: `view`, `user`, `setting`.
        kind: String,
        /// Its name within its kind.
        key: String,
        /// Its bytes.
        value: Vec<u8>,
    },
    /// Removes a durable record; fine when there is none.
    DeleteRecord {
        /// What the record is.
        kind: String,
        /// Its name within its kind.
        key: String,
    },
}

impl Change {
    /// Ends what [`Change::Follow`] began.
    #[must_use]
    pub fn unfollow(table: TableId) -> Self {
        Self::DeleteRecord { kind: FOLLOWED_RECORDS.to_owned(), key: table.to_string() }
    }

    /// Lets the commit fail with `Replan` where a watched table was touched after the snapshot.
    #[must_use]
    pub fn expect_untouched(snapshot: &Snapshot, table: TableId) -> Self {
        let value = snapshot.touched_record(table).map(<[u8]>::to_vec);
        Self::Expect { kind: TOUCHED_RECORDS.to_owned(), key: table.to_string(), value }
    }

    /// Ends what [`Change::Watch`] began.
    #[must_use]
    pub fn unwatch(table: TableId) -> Self {
        Self::DeleteRecord { kind: TOUCHED_RECORDS.to_owned(), key: table.to_string() }
    }
}

/// Where a bulk write goes.
#[derive(Debug, Clone)]
pub enum BulkTarget {
    /// Rows are added to this table.
    Existing(TableId),
    /// The table is created with its rows. Fails at the end when the name was taken meanwhile.
    Create(TableSchema),
    /// The table is created with its rows in place of another one.
    Replace {
        /// The table that disappears.
        old: TableId,
        /// The table that takes its place, usually with the same name.
        schema: TableSchema,
    },
}

/// A commit that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitReceipt {
    /// Number of the transaction in the log.
    pub lsn: u64,
    /// The first snapshot epoch that shows it.
    pub epoch: u64,
}
