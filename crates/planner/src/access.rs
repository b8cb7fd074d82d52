//! What a statement touches, and by whose right.

use tidemark_border::Permission;
use tidemark_catalog::Owner;

/// A table or columns that a statement reads or writes, with the permission it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The table.
    pub table: String,
    /// Columns read; empty for the table as a whole.
    pub columns: Vec<String>,
    /// What it takes.
    pub permission: Permission,
    /// The view whose query touches it: the right is that of the view's owner, not the user's.
    pub view: Option<String>,
    /// The owner of that view.
    pub owner: Option<Owner>,
}

impl Access {
    /// What the statement itself does to a table as a whole.
    #[must_use]
    pub fn new(table: &str, permission: Permission) -> Self {
        let table = table.to_owned();
        Self { table, columns: Vec::new(), permission, view: None, owner: None }
    }

    /// The same by way of a view, unless it is by way of another already.
    pub(crate) fn through(self, view: &str, owner: &Owner) -> Self {
        if self.view.is_some() {
            return self;
        }
        Self { view: Some(view.to_owned()), owner: Some(owner.clone()), ..self }
    }

    /// The same of the user's own right.
    pub(crate) fn directly(self) -> Self {
        Self { view: None, owner: None, ..self }
    }

    /// Tells it apart from others, as a question.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{self:?}")
    }

    /// The same for each column by itself.
    pub(crate) fn by_column(self) -> Vec<Self> {
        if self.columns.is_empty() {
            return vec![self];
        }
        let one = |column: &String| Self { columns: vec![column.clone()], ..self.clone() };
        self.columns.iter().map(one).collect()
    }

    /// Whether this view's query does it.
    pub(crate) fn is_through(&self, view: &str) -> bool {
        self.view.as_deref() == Some(view)
    }
}
