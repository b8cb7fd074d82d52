//! Which pieces of a partition a checkpoint writes anew, and in which order of rows.
//!
//! Runs must go to disk, overlapping pieces become one, small neighbours join them; a large
//! segment that nothing overlaps is never written again.

use std::sync::Arc;

use tidemark_types::EngineResult;

use crate::merge::Stretch;
use crate::partition::{Partition, clusters};
use crate::piece::{Piece, order_of};
use crate::schema::ColumnSchema;
use crate::segment::Segment;

/// A segment below this is small; many of them in a partition are joined.
const SMALL_ROWS: usize = 64 << 10;
/// So many small segments may stay in a partition.
const SMALL_SEGMENTS: usize = 8;

/// One segment of the folded partition.
#[derive(Debug)]
pub(crate) enum Output {
    /// Stays as it is.
    Kept(Arc<Segment>),
    /// Has to be written.
    Written {
        pieces: Vec<Piece>,
        order: Vec<Stretch>,
        bounds: (i64, i64),
        /// The latest transaction in it.
        lsn: u64,
    },
}

/// Pieces that will be one segment, or several when they are many.
#[derive(Debug)]
struct Group {
    /// Indices in the order of arrival.
    members: Vec<usize>,
    rows: usize,
    bounds: (i64, i64),
    lsn: u64,
    dirty: bool,
    /// Whether all of it is in memory still.
    fresh: bool,
}

impl Group {
    fn join(&mut self, other: Self) {
        self.members.extend(other.members);
        self.rows += other.rows;
        self.bounds = (self.bounds.0.min(other.bounds.0), self.bounds.1.max(other.bounds.1));
        self.lsn = self.lsn.max(other.lsn);
        self.dirty = true;
        self.fresh &= other.fresh;
    }
}

pub(crate) fn plan_fold(
    partition: &Partition,
    timestamp: Option<&ColumnSchema>,
    segment_rows: usize,
) -> EngineResult<Vec<Output>> {
    let pieces = partition.pieces();
    let clusters = match timestamp {
        Some(_) => clusters(&pieces),
        None => (0..pieces.len()).map(|index| vec![index]).collect(),
    };
    let small = |piece: &Piece| piece.rows() < SMALL_ROWS;
    let many = pieces.iter().filter(|piece| small(piece)).count() > SMALL_SEGMENTS;
    let groups = clusters.into_iter().map(|members| {
        let of = |index: &usize| &pieces[*index];
        let bounds = members.iter().map(|i| of(i).bounds());
        Group {
            rows: members.iter().map(|i| of(i).rows()).sum(),
            bounds: bounds.fold((i64::MAX, i64::MIN), |a, b| (a.0.min(b.0), a.1.max(b.1))),
            lsn: members.iter().map(|i| of(i).lsn()).max().unwrap_or(0),
            dirty: members.len() > 1
                || members.iter().any(|i| match of(i) {
                    Piece::Segment(s) => s.is_patched() || (many && small(of(i))),
                    _ => true,
                }),
            fresh: members.iter().all(|i| matches!(of(i), Piece::Run(_))),
            members,
        }
    });
    let groups = join_neighbours(groups.collect(), segment_rows);
    let mut outputs = Vec::with_capacity(groups.len());
    for group in groups {
        write_group(&pieces, group, timestamp, segment_rows, &mut outputs)?;
    }
    Ok(outputs)
}

/// Joins a group that is written anyway with neighbours of like size, and with those that share
/// its border's timestamp but would then stand on the wrong side of it.
fn join_neighbours(groups: Vec<Group>, segment_rows: usize) -> Vec<Group> {
    let mut joined: Vec<Group> = Vec::with_capacity(groups.len());
    for mut group in groups {
        while let Some(left) = joined.last() {
            let either = left.dirty || group.dirty;
            let (less, more) = (left.rows.min(group.rows), left.rows.max(group.rows));
            let fresh = left.fresh && group.fresh;
            let alike = fresh || more <= less.saturating_mul(2).max(SMALL_ROWS);
            let fits = left.rows + group.rows <= segment_rows;
            let crossed = left.bounds.1 == group.bounds.0 && left.lsn > group.lsn;
            if !(either && (alike && fits || crossed)) {
                break;
            }
            if let Some(mut left) = joined.pop() {
                left.join(group);
                group = left;
            }
        }
        joined.push(group);
    }
    joined
}

fn write_group(
    pieces: &[Piece],
    mut group: Group,
    timestamp: Option<&ColumnSchema>,
    segment_rows: usize,
    outputs: &mut Vec<Output>,
) -> EngineResult<()> {
    if let ([single], false) = (&group.members[..], group.dirty)
        && let Piece::Segment(segment) = &pieces[*single]
    {
        outputs.push(Output::Kept(Arc::clone(segment)));
        return Ok(());
    }
    group.members.sort_unstable();
    let sources: Vec<Piece> = group.members.iter().map(|&index| pieces[index].clone()).collect();
    let whole = |(source, piece): (usize, &Piece)| Stretch { source, start: 0, len: piece.rows() };
    let Some(timestamp) = timestamp else {
        for order in split(sources.iter().enumerate().map(whole).collect(), segment_rows) {
            let (pieces, lsn) = (sources.clone(), group.lsn);
            outputs.push(Output::Written { pieces, order, bounds: (0, 0), lsn });
        }
        return Ok(());
    };
    let times: Vec<_> =
        sources.iter().map(|piece| piece.timestamps(timestamp)).collect::<Result<_, _>>()?;
    let slices: Vec<&[i64]> = times.iter().map(|times| &times[..]).collect();
    for order in split(order_of(&sources, &slices)?, segment_rows) {
        let first = order.first().map_or(0, |s| slices[s.source][s.start]);
        let last = order.last().map_or(0, |s| slices[s.source][s.start + s.len - 1]);
        let (pieces, lsn) = (sources.clone(), group.lsn);
        outputs.push(Output::Written { pieces, order, bounds: (first, last), lsn });
    }
    Ok(())
}

/// Cuts an order into portions of at most `rows` rows, none of them empty.
pub(crate) fn split(order: Vec<Stretch>, rows: usize) -> Vec<Vec<Stretch>> {
    let mut portions = Vec::new();
    let mut portion = Vec::new();
    let mut room = rows.max(1);
    for mut stretch in order {
        while stretch.len > room {
            if room > 0 {
                portion.push(Stretch { len: room, ..stretch });
            }
            portions.push(std::mem::take(&mut portion));
            stretch.start += room;
            stretch.len -= room;
            room = rows.max(1);
        }
        room -= stretch.len;
        if stretch.len > 0 {
            portion.push(stretch);
        }
    }
    if !portion.is_empty() {
        portions.push(portion);
    }
    portions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_are_full_and_hold_no_empty_stretch() {
        let stretch = |start, len| Stretch { source: 0, start, len };
        let portions = split(vec![stretch(0, 3), stretch(3, 7), stretch(10, 5)], 5);
        let sizes: Vec<usize> = portions.iter().map(|p| p.iter().map(|s| s.len).sum()).collect();
        assert_eq!(sizes, [5, 5, 5]);
        assert!(portions.iter().flatten().all(|s| s.len > 0));
        assert_eq!(portions[1], [stretch(5, 5)]);
    }
}
