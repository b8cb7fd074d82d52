//! Kinds of records that storage itself reads. The key is the identifier of a table, and the record
//! goes with the table.

/// Which tables miss transactions.
pub(crate) const LOST_RECORDS: &str = "damage";
/// Which stretches of time of a watched table were touched.
pub(crate) const TOUCHED_RECORDS: &str = "touched";
/// Which stretches of time of a followed table were touched.
pub(crate) const FOLLOWED_RECORDS: &str = "followed";
/// A table with such a record is a materialized view.
pub(crate) const MATERIALIZED_RECORDS: &str = "materialized_view";
/// What a materialized view shows.
pub(crate) const MATERIALIZED_STATES: &str = "materialized_state";
/// A materialized view with such a record is a live view.
pub(crate) const LIVE_RECORDS: &str = "live_view";
/// Why a materialized view may not be refreshed.
pub(crate) const REFUSAL_RECORDS: &str = "refresh_refusal";

/// All of them.
pub(crate) const TABLE_RECORDS: [&str; 7] = [
    LOST_RECORDS,
    TOUCHED_RECORDS,
    FOLLOWED_RECORDS,
    MATERIALIZED_RECORDS,
    MATERIALIZED_STATES,
    LIVE_RECORDS,
    REFUSAL_RECORDS,
];
