//! Kinds of records that storage itself reads. The key is a table identifier, and the record is
//! removed with the table.

/// Tables with lost transactions.
pub(crate) const LOST_RECORDS: &str = "damage";
/// Touched time ranges of a watched table.
pub(crate) const TOUCHED_RECORDS: &str = "touched";
/// Touched time ranges of a followed table.
pub(crate) const FOLLOWED_RECORDS: &str = "followed";
/// A table with such a record is a materialized view.
pub(crate) const MATERIALIZED_RECORDS: &str = "materialized_view";
/// State of a materialized view's content.
pub(crate) const MATERIALIZED_STATES: &str = "materialized_state";
/// A materialized view with such a record is a live view.
pub(crate) const LIVE_RECORDS: &str = "live_view";
/// Why a materialized view must not be refreshed.
pub(crate) const REFUSAL_RECORDS: &str = "refresh_refusal";

/// All of the record kinds above.
pub(crate) const TABLE_RECORDS: [&str; 7] = [
    LOST_RECORDS,
    TOUCHED_RECORDS,
    FOLLOWED_RECORDS,
    MATERIALIZED_RECORDS,
    MATERIALIZED_STATES,
    LIVE_RECORDS,
    REFUSAL_RECORDS,
];
