//! Tables and columns that a statement accesses, and the user whose permissions apply.

use tidemark_border::Permission;
use tidemark_catalog::Owner;

/// A table or columns that a statement reads or writes, with the required permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The table.
    pub table: String,
    /// Columns that are read; empty if the access is to the whole table.
    pub columns: Vec<String>,
    /// The required permission.
    pub permission: Permission,
    /// The view whose query makes the access, if any. The view owner's permissions then apply
    /// instead of the user's.
    pub view: Option<String>,
    /// The owner of the view in `view`.
    pub owner: Option<Owner>,
}

impl Access {
    /// Describes direct access to a whole table.
    #[must_use]
    pub fn new(table: &str, permission: Permission) -> Self {
        let table = table.to_owned();
        Self { table, columns: Vec::new(), permission, view: None, owner: None }
    }

    /// Attributes this access to the query of a view, unless it is already attributed to a view.
    pub(crate) fn through(self, view: &str, owner: &Owner) -> Self {
        if self.view.is_some() {
            return self;
        }
        Self { view: Some(view.to_owned()), owner: Some(owner.clone()), ..self }
    }

    /// Turns this access into a direct access, which requires the user's own permissions instead of
    /// a view owner's.
    pub(crate) fn directly(self) -> Self {
        Self { view: None, owner: None, ..self }
    }

    /// Returns the key that identifies this access in permission requests.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{self:?}")
    }

    /// Splits the access into one access per column.
    pub(crate) fn by_column(self) -> Vec<Self> {
        if self.columns.is_empty() {
            return vec![self];
        }
        let one = |column: &String| Self { columns: vec![column.clone()], ..self.clone() };
        self.columns.iter().map(one).collect()
    }

    /// Whether the access is made by this view's query.
    pub(crate) fn is_through(&self, view: &str) -> bool {
        self.view.as_deref() == Some(view)
    }
}
