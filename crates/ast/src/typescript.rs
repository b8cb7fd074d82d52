//! Writes the tree's TypeScript counterpart: one file with all types, in the order below.
//!
//! `npm run generate` passes the output folder in `TIDEMARK_TYPESCRIPT`. Without this variable, the
//! test writes no file and only verifies that every type can be rendered.

use std::fmt::Write as _;

use ts_rs::TS;

use crate::{
    AccessList, AccessStatement, AlterAction, Anchor, AnchorPeriod, AsofTolerance, BackupStatement,
    BinaryOperator, CallNode, CaseBranch, ColumnDefinition, Conflict, ConstraintKind,
    ConstraintNode, CopyStatement, CreateTableNode, Cte, Declaration, DeleteNode, ExpireRows,
    ExpireRule, ExplainStage, Fill, Frame, FrameBound, FrameMode, GrantTable, GrantTarget,
    IndexSelector, InsertNode, JoinKind, JoinOn, LatestOn, Limit, LiveClauses, LiveStart,
    LogicalOperator, MaterialClauses, Name, NamedWindow, Node, NullsOrder, OptionValue, OrderItem,
    PartitionChange, Password, Permission, PivotNode, PlainRows, PolicyStages, PrincipalChange,
    PrincipalKind, ReferenceAction, ReferenceNode, RefreshMode, RefreshPeriod, RefreshPolicy,
    RefreshTrigger, SampleAlign, SampleBy, SelectItem, SelectNode, SetOperator, ShowSubject, Span,
    TokenType, Tree, TypeName, UnaryOperator, UpdateNode, ValuesBlock, ViewAction, ViewKind,
    WindowSpec,
};

const HEADER: &str = "/**
 * The tree of a statement. Generated from crates/ast by `npm run generate`; do not edit.
 *
 * A node is named by its index in `Tree.nodes`; children come before their parents.
 */

/** Index of a node in `Tree.nodes`. */
export type NodeId = number;
";

/// Appends each type's declaration.
macro_rules! declare {
    ($out:expr, $($name:ident),+ $(,)?) => {
        $(
            writeln!($out, "\nexport {}", <$name as TS>::decl()).expect("writing cannot fail");
        )+
    };
}

/// Declares the types of expressions and queries.
fn declare_queries(text: &mut String) {
    declare!(
        text,
        Tree,
        Node,
        Span,
        Name,
        TypeName,
        UnaryOperator,
        BinaryOperator,
        LogicalOperator,
        CaseBranch,
        CallNode,
        WindowSpec,
        Anchor,
        AnchorPeriod,
        Frame,
        FrameMode,
        FrameBound,
        IndexSelector,
        Declaration,
        Cte,
        SelectNode,
        SelectItem,
        LatestOn,
        SampleBy,
        Fill,
        SampleAlign,
        OrderItem,
        NullsOrder,
        Limit,
        NamedWindow,
        JoinKind,
        JoinOn,
        AsofTolerance,
        PivotNode,
        SetOperator,
    );
}

/// Declares the types of statements.
fn declare_statements(text: &mut String) {
    declare!(
        text,
        CreateTableNode,
        ColumnDefinition,
        ConstraintNode,
        ConstraintKind,
        ReferenceNode,
        ReferenceAction,
        OptionValue,
        InsertNode,
        Conflict,
        PlainRows,
        ValuesBlock,
        UpdateNode,
        DeleteNode,
        ViewKind,
        AlterAction,
        PartitionChange,
        PolicyStages,
        ShowSubject,
        AccessList,
        ExplainStage,
        MaterialClauses,
        LiveClauses,
        LiveStart,
        RefreshPolicy,
        RefreshTrigger,
        RefreshPeriod,
        ExpireRows,
        ExpireRule,
        ViewAction,
        RefreshMode,
        CopyStatement,
        BackupStatement,
        AccessStatement,
        PrincipalKind,
        Password,
        PrincipalChange,
        TokenType,
        Permission,
        GrantTarget,
        GrantTable,
    );
}

#[test]
fn typescript_types_are_generated() {
    let mut text = HEADER.to_owned();
    declare_queries(&mut text);
    declare_statements(&mut text);
    assert!(text.contains("export type Node ="), "the node type is missing");
    if let Some(folder) = std::env::var_os("TIDEMARK_TYPESCRIPT") {
        let file = std::path::Path::new(&folder).join("ast.ts");
        std::fs::write(file, text).expect("the file can be written");
    }
}
