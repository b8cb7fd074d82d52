//! Permissions that engine statements require. `ts/access` defines these and further permissions.

use std::fmt;

use serde::Serialize;

/// Declares each permission once, with its name.
macro_rules! permissions {
    ($($variant:ident = $name:literal,)+) => {
        /// A permission that a statement requires on a table, a column or the database.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        pub enum Permission {
            $(
                #[doc = $name]
                #[serde(rename = $name)]
                $variant,
            )+
        }

        impl Permission {
            /// Returns the name used in GRANT.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

permissions! {
    Select = "SELECT",
    Insert = "INSERT",
    Update = "UPDATE",
    Delete = "DELETE",
    CreateTable = "CREATE TABLE",
    DropTable = "DROP TABLE",
    TruncateTable = "TRUNCATE TABLE",
    RenameTable = "RENAME TABLE",
    AddColumn = "ADD COLUMN",
    DropColumn = "DROP COLUMN",
    RenameColumn = "RENAME COLUMN",
    AlterColumnType = "ALTER COLUMN TYPE",
    AlterColumnCache = "ALTER COLUMN CACHE",
    AddIndex = "ADD INDEX",
    DropIndex = "DROP INDEX",
    Reindex = "REINDEX",
    DropPartition = "DROP PARTITION",
    DetachPartition = "DETACH PARTITION",
    AttachPartition = "ATTACH PARTITION",
    SetTableParam = "SET TABLE PARAM",
    SetTableType = "SET TABLE TYPE",
    VacuumTable = "VACUUM TABLE",
    DedupDisable = "DEDUP DISABLE",
    DedupEnable = "DEDUP ENABLE",
    ResumeWal = "RESUME WAL",
    SetStoragePolicy = "SET STORAGE POLICY",
    EnableStoragePolicy = "ENABLE STORAGE POLICY",
    DisableStoragePolicy = "DISABLE STORAGE POLICY",
    RemoveStoragePolicy = "REMOVE STORAGE POLICY",
    CreateView = "CREATE VIEW",
    AlterView = "ALTER VIEW",
    DropView = "DROP VIEW",
    CompileView = "COMPILE VIEW",
    CreateMaterializedView = "CREATE MATERIALIZED VIEW",
    AlterMaterializedView = "ALTER MATERIALIZED VIEW",
    DropMaterializedView = "DROP MATERIALIZED VIEW",
    RefreshMaterializedView = "REFRESH MATERIALIZED VIEW",
    CreateLiveView = "CREATE LIVE VIEW",
    DropLiveView = "DROP LIVE VIEW",
    ReadFiles = "READ FILES",
    Snapshot = "SNAPSHOT",
    SystemAdmin = "SYSTEM ADMIN",
}

impl fmt::Display for Permission {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}
