//! Rules of planning: what they need to know of an operator, they ask it
//! ([`tidemark_operators::Facts`]).

pub(crate) mod bound;
pub(crate) mod costly;
pub(crate) mod decorrelate;
pub(crate) mod distinct;
pub(crate) mod fence;
pub(crate) mod filter_scan;
pub(crate) mod instead;
pub(crate) mod join_keys;
pub(crate) mod keep_time_order;
pub(crate) mod keys;
pub(crate) mod merge_joins;
pub(crate) mod push_filters;
pub(crate) mod requirements;
pub(crate) mod select_joins;
pub(crate) mod share_rows;
pub(crate) mod stoppable;
