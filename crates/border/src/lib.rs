//! Types that cross between TypeScript and Rust as JSON, apart from the syntax tree: options,
//! replies, reports and permission names. `npm run generate` writes their TypeScript types to
//! `ts/border/types.generated.ts`, where 64-bit integers are numbers.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod append;
mod execute;
mod handoff;
mod metadata;
mod observe;
mod open;
mod permission;
mod shared;
mod statement;
mod text;
#[cfg(test)]
mod typescript;

pub use append::{
    AppendProgress, AppendReport, AppenderKind, AppenderSpec, ColumnsSpec, CopyColumnSpec,
    CopyFormat, CopyHeader, CopyMistake, CopyReply, CopySpec, CsvAtomicity, CsvColumnSpec,
    CsvTextSpec, LinePrecision, LinesRead, LinesSpec, MessagesProgress, PlannedTable,
    RequestedCommit, RowsReply, TextReport, WidenedColumn,
};
pub use execute::{
    ChangeKind, ChangedRange, ChangesOptions, ExecuteOptions, ParquetOptions, RowFormat, Summary,
    TableChange,
};
pub use handoff::{
    Conversation, HandoffQuery, HandoffSpec, HandoffStatement, HttpHandoff, PgHandoff,
};
pub use metadata::{ActiveQuery, TableColumn, TableMetadata};
pub use observe::{Damage, LogLevel, LogLine, Observed};
pub use open::{CommitMode, OpenOptions, Setting, Verify};
pub use permission::Permission;
pub use shared::Shared;
pub use statement::{
    Access, ColumnSource, ListedCell, ListedRows, ListedType, Owner, PermissionRequest,
    ResultColumn, SequenceValue, StatementContext, StatementDescription, StatementKind, Visibility,
};
pub use text::{TextFile, TextFormat, TextFormatRequest, TextPath, TextShape};
