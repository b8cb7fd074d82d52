//! Statements about users, groups, service accounts and their permissions.

use serde::{Deserialize, Serialize};

use crate::{Name, Span};

/// An access control statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "statement")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum AccessStatement {
    /// CREATE USER | GROUP | SERVICE ACCOUNT [IF NOT EXISTS]
    Create {
        principal: PrincipalKind,
        name: Name,
        if_not_exists: bool,
        password: Option<Password>,
        external_alias: Option<Name>,
        owner: Option<Name>,
    },
    /// DROP USER | GROUP | SERVICE ACCOUNT [IF EXISTS]
    Drop { principal: PrincipalKind, name: Name, if_exists: bool },
    /// ALTER USER | GROUP | SERVICE ACCOUNT
    Alter { principal: PrincipalKind, name: Name, change: PrincipalChange },
    /// ADD USER u TO g, …
    AddMember { user: Name, groups: Vec<Name> },
    /// REMOVE USER u FROM g, …
    RemoveMember { user: Name, groups: Vec<Name> },
    /// ASSUME SERVICE ACCOUNT s
    Assume { account: Name },
    /// EXIT SERVICE ACCOUNT [s]
    Exit { account: Option<Name> },
    /// GRANT permissions [ON target] TO e [WITH GRANT OPTION] [WITH VERIFICATION]
    Grant {
        permissions: Vec<Permission>,
        on: Option<GrantTarget>,
        to: Name,
        grant_option: bool,
        verification: bool,
    },
    /// REVOKE permissions [ON target] FROM e
    Revoke { permissions: Vec<Permission>, on: Option<GrantTarget>, from: Name },
}

/// Kinds of principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum PrincipalKind {
    /// USER
    User,
    /// GROUP
    Group,
    /// SERVICE ACCOUNT
    ServiceAccount,
}

/// WITH PASSWORD, WITH NO PASSWORD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "password")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Password {
    /// WITH NO PASSWORD
    None,
    /// WITH PASSWORD p
    Given { value: Name },
}

/// The change that ALTER makes to a principal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum PrincipalChange {
    /// ENABLE
    Enable,
    /// DISABLE
    Disable,
    /// WITH PASSWORD, WITH NO PASSWORD
    SetPassword { to: Password },
    /// CREATE TOKEN TYPE JWK | REST WITH TTL 't' [REFRESH]
    CreateToken { token: TokenType, ttl: Option<Name>, refresh: bool },
    /// DROP TOKEN TYPE JWK | REST: drops the given token, or all tokens of this type.
    DropToken { token: TokenType, value: Option<Name> },
    /// WITH EXTERNAL ALIAS
    AddAlias { alias: Name },
    /// DROP EXTERNAL ALIAS
    DropAlias { alias: Name },
}

/// Kinds of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum TokenType {
    /// JWK
    Jwk,
    /// REST
    Rest,
}

/// A permission as named in GRANT: `SELECT`, `ADD COLUMN`, `ASSUME SERVICE ACCOUNT s`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Permission {
    /// The permission's name in upper case, with its words separated by single spaces.
    pub name: String,
    /// Account name in ASSUME SERVICE ACCOUNT.
    pub account: Option<Name>,
    /// The permission's span in the SQL text.
    pub span: Span,
}

/// The object of a GRANT or REVOKE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "target")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum GrantTarget {
    /// ALL TABLES
    AllTables,
    /// `t`, `t(a, b)`, `t(* EXCLUDE (c))`, …
    Tables { tables: Vec<GrantTable> },
}

/// A table, and the columns to which a permission applies. Without column lists, the permission
/// applies to the whole table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct GrantTable {
    /// The table.
    pub table: Name,
    /// Columns listed after the table name.
    pub columns: Vec<Name>,
    /// Whether `*` is given.
    pub all_columns: bool,
    /// Columns listed after EXCLUDE.
    pub exclude: Vec<Name>,
}
