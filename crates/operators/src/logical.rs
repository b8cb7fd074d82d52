//! All logical nodes of this crate in one enum. A rule that matches on it does not compile until it
//! handles newly added nodes.

use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};

use crate::asof::node::AsofJoinNode;
use crate::fill::node::FillNode;
use crate::horizon::node::HorizonJoinNode;
use crate::last_rows::node::LastRowsNode;
use crate::latest_on::node::LatestOnNode;
use crate::lowering::Lower;
use crate::ordered_join::node::OrderedJoinNode;
use crate::sample_by::node::SampleByNode;
use crate::shared_rows::node::SharedRowsNode;
use crate::splice::node::SpliceJoinNode;
use crate::unnest::node::UnnestNode;
use crate::window::node::WindowNode;
use crate::window_join::node::WindowJoinNode;

/// A logical node of this crate.
pub enum LogicalNode<'a> {
    SampleBy(&'a SampleByNode),
    Fill(&'a FillNode),
    LatestOn(&'a LatestOnNode),
    LastRows(&'a LastRowsNode),
    Windows(&'a WindowNode),
    Unnest(&'a UnnestNode),
    Asof(&'a AsofJoinNode),
    Splice(&'a SpliceJoinNode),
    WindowJoin(&'a WindowJoinNode),
    Horizon(&'a HorizonJoinNode),
    OrderedJoin(&'a OrderedJoinNode),
    SharedRows(&'a SharedRowsNode),
}

impl<'a> LogicalNode<'a> {
    /// Returns the node as this enum; `None` for nodes of other crates.
    pub fn of(node: &'a dyn UserDefinedLogicalNode) -> Option<Self> {
        let node = node.as_any();
        None.or_else(|| node.downcast_ref().map(Self::SampleBy))
            .or_else(|| node.downcast_ref().map(Self::Fill))
            .or_else(|| node.downcast_ref().map(Self::LatestOn))
            .or_else(|| node.downcast_ref().map(Self::LastRows))
            .or_else(|| node.downcast_ref().map(Self::Windows))
            .or_else(|| node.downcast_ref().map(Self::Unnest))
            .or_else(|| node.downcast_ref().map(Self::Asof))
            .or_else(|| node.downcast_ref().map(Self::Splice))
            .or_else(|| node.downcast_ref().map(Self::WindowJoin))
            .or_else(|| node.downcast_ref().map(Self::Horizon))
            .or_else(|| node.downcast_ref().map(Self::OrderedJoin))
            .or_else(|| node.downcast_ref().map(Self::SharedRows))
    }

    /// Returns a plan's node as this enum, if the node belongs to this crate.
    pub fn of_plan(plan: &'a LogicalPlan) -> Option<Self> {
        match plan {
            LogicalPlan::Extension(extension) => Self::of(extension.node.as_ref()),
            _ => None,
        }
    }

    /// Returns the node if its operator reads all columns of its inputs. Returns `None` for a node
    /// that reads only some columns and passes this requirement down to its inputs.
    pub fn over_all_columns(&self) -> Option<&'a dyn Lower> {
        match *self {
            Self::Windows(node) => Some(node),
            Self::Unnest(node) => Some(node),
            Self::Asof(node) => Some(node),
            Self::Splice(node) => Some(node),
            Self::WindowJoin(node) => Some(node),
            Self::Horizon(node) => Some(node),
            Self::SharedRows(node) => Some(node),
            Self::SampleBy(_)
            | Self::Fill(_)
            | Self::LatestOn(_)
            | Self::LastRows(_)
            | Self::OrderedJoin(_) => None,
        }
    }
}
