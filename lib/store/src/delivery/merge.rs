//! The items of several queries as one list, newest first. Every query has to be in descending order of sort keys.
//!
//! Each query is read ahead by a few items, and by twice as many each time that these are used up: the newest items may
//! be spread over all queries, or be those of one.

use std::collections::VecDeque;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use futures::future::try_join_all;

use crate::db::{Item, StoreError, query_page, sk_of};

/// Fewest items of a query's first request, and most of any.
const MIN_STEP: usize = 8;
const MAX_STEP: usize = 200;

pub(super) struct MergedQueries {
    queries: Vec<ReadAhead>,
    /// Items that may still be read.
    budget: usize,
}

struct ReadAhead {
    query: QueryFluentBuilder,
    items: VecDeque<Item>,
    start: Option<Item>,
    has_ended: bool,
    /// Items of the next request.
    step: usize,
}

/// The next item of a merge.
pub(super) enum Merged {
    Item(Item),
    End,
    /// As many items as allowed were read, and others may follow.
    Interrupted,
}

impl MergedQueries {
    /// A merge that reads at most `budget` items. About `wanted` of them will be used.
    pub(super) fn new(queries: Vec<QueryFluentBuilder>, wanted: usize, budget: usize) -> Self {
        let step = wanted.div_ceil(queries.len().max(1)).clamp(MIN_STEP, MAX_STEP);
        let queries = queries.into_iter().map(|query| ReadAhead {
            query,
            items: VecDeque::new(),
            start: None,
            has_ended: false,
            step,
        });
        Self { queries: queries.collect(), budget }
    }

    /// Removes and returns the newest item that is left.
    pub(super) async fn next(&mut self) -> Result<Merged, StoreError> {
        self.read_ahead().await?;
        // The newest item may be in a query that has not been read.
        if self.queries.iter().any(ReadAhead::is_used_up) {
            return Ok(Merged::Interrupted);
        }
        let newest = self.queries.iter_mut().max_by(|one, other| one.sort_key().cmp(&other.sort_key()));
        Ok(newest.and_then(|query| query.items.pop_front()).map_or(Merged::End, Merged::Item))
    }

    /// Reads every query whose items are used up, as far as the budget goes.
    async fn read_ahead(&mut self) -> Result<(), StoreError> {
        let mut reads = Vec::new();
        for query in self.queries.iter_mut().filter(|query| query.is_used_up()) {
            let most = query.step.min(self.budget);
            if most > 0 {
                self.budget -= most;
                reads.push(query.read(most));
            }
        }
        if !reads.is_empty() {
            self.budget += try_join_all(reads).await?.iter().sum::<usize>();
        }
        Ok(())
    }
}

impl ReadAhead {
    fn is_used_up(&self) -> bool {
        self.items.is_empty() && !self.has_ended
    }

    /// The sort key of the newest item. `None` sorts below all.
    fn sort_key(&self) -> Option<&str> {
        self.items.front().map(sk_of)
    }

    /// Reads at most that many items. Returns how many fewer there were.
    async fn read(&mut self, most: usize) -> Result<usize, StoreError> {
        let query = self.query.clone().limit(i32::try_from(most).unwrap_or(i32::MAX));
        let page = query_page(query.set_exclusive_start_key(self.start.take())).await?;
        let unused = most.saturating_sub(page.items.len());
        self.items.extend(page.items);
        self.has_ended = page.next.is_none();
        self.start = page.next;
        self.step = (2 * self.step).min(MAX_STEP);
        Ok(unused)
    }
}
