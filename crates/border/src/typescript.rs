//! Writes the TypeScript types of the border crate into one file. `npm run generate` passes the
//! target folder in `TIDEMARK_TYPESCRIPT`. Without this variable, the test writes no file and only
//! checks that every type can be rendered.

use std::fmt::Write as _;

use ts_rs::TS;

use crate::{
    Access, ActiveQuery, AppendProgress, AppendReport, AppenderKind, AppenderSpec, ChangeKind,
    ChangedRange, ChangesOptions, ColumnSource, ColumnsSpec, CommitMode, Conversation,
    CopyColumnSpec, CopyFormat, CopyHeader, CopyMistake, CopyReply, CopySpec, CsvAtomicity,
    CsvColumnSpec, CsvTextSpec, Damage, ExecuteOptions, HandoffQuery, HandoffSpec,
    HandoffStatement, HttpHandoff, LinePrecision, LinesRead, LinesSpec, ListedCell, ListedRows,
    ListedType, LogLevel, LogLine, MessagesProgress, Observed, OpenOptions, Owner, ParquetOptions,
    Permission, PermissionRequest, PgHandoff, PlannedTable, RequestedCommit, ResultColumn,
    RowFormat, RowsReply, SequenceValue, Setting, StatementContext, StatementDescription,
    StatementKind, Summary, TableChange, TableColumn, TableMetadata, TextFile, TextFormat,
    TextFormatRequest, TextPath, TextReport, TextShape, Verify, Visibility, WidenedColumn,
};

const HEADER: &str = "/**
 * What crosses between TypeScript and Rust as JSON. Generated from crates/border and crates/types
 * by `npm run generate`; do not edit.
 */
";

/// Renders each type's declaration.
macro_rules! declarations {
    ($($name:ident),+ $(,)?) => {
        [$(<$name as TS>::decl()),+]
    };
}

fn of_copy() -> [String; 6] {
    declarations!(CopySpec, CopyFormat, CopyHeader, CopyColumnSpec, CopyReply, CopyMistake)
}

fn of_handoffs() -> [String; 6] {
    declarations!(HandoffSpec, Conversation, PgHandoff, HandoffStatement, HttpHandoff, HandoffQuery)
}

#[test]
fn typescript_types_are_generated() {
    let mut text = HEADER.to_owned();
    let declarations = declarations!(
        OpenOptions,
        CommitMode,
        Verify,
        Setting,
        StatementContext,
        SequenceValue,
        Owner,
        Visibility,
        ListedRows,
        ListedType,
        ListedCell,
        StatementKind,
        StatementDescription,
        ColumnSource,
        ResultColumn,
        PermissionRequest,
        TextFormatRequest,
        TextFormat,
        TextPath,
        TextShape,
        TextFile,
        Access,
        Permission,
        ExecuteOptions,
        ChangesOptions,
        TableChange,
        ChangeKind,
        ChangedRange,
        RowFormat,
        ParquetOptions,
        Summary,
        TableMetadata,
        TableColumn,
        ActiveQuery,
        Observed,
        Damage,
        LogLine,
        LogLevel,
        AppenderSpec,
        AppenderKind,
        CsvTextSpec,
        CsvAtomicity,
        CsvColumnSpec,
        AppendProgress,
        TextReport,
        WidenedColumn,
        AppendReport,
        LinesRead,
        MessagesProgress,
        RequestedCommit,
        LinesSpec,
        ColumnsSpec,
        LinePrecision,
        RowsReply,
        PlannedTable,
    );
    for declaration in declarations.into_iter().chain(of_copy()).chain(of_handoffs()) {
        // JSON has only one number type, and received arrays are read-only.
        let declaration =
            declaration.replace("bigint", "number").replace("Array<", "ReadonlyArray<");
        writeln!(text, "\nexport {declaration}").expect("writing to a string cannot fail");
    }
    if let Some(folder) = std::env::var_os("TIDEMARK_TYPESCRIPT") {
        let file = std::path::Path::new(&folder).join("border.ts");
        std::fs::write(file, text).expect("the file can be written");
    }
}
