//! Scans: the whole of a table is read, page by page, and what matches is returned.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::db::{Item, MeteredRequest, StoreError, Table, failed};

/// Is told how many items of a table a scan has read so far: of which table, how many, and whether that was all.
pub trait Progress: Sync {
    fn read(&self, table: &str, items: u64, is_all: bool);
}

/// Reads a table, and returns the items for which the filter holds.
pub(super) async fn scan<const N: usize>(
    table: &Table,
    filter: &str,
    values: [(&str, AttributeValue); N],
    progress: &dyn Progress,
) -> Result<Vec<Item>, StoreError> {
    let values = values.map(|(name, value)| (name.to_owned(), value));
    let request = table.db.client().scan().table_name(&table.name).filter_expression(filter);
    let request = request.set_expression_attribute_values(Some(values.into()));
    let (mut found, mut items, mut start) = (Vec::new(), 0, None);
    loop {
        let page = request.clone().set_exclusive_start_key(start).send_metered().await;
        let page = page.map_err(|error| failed("Scan", error))?;
        items += u64::try_from(page.scanned_count).unwrap_or_default();
        found.extend(page.items.unwrap_or_default());
        start = page.last_evaluated_key;
        progress.read(&table.name, items, start.is_none());
        if start.is_none() {
            return Ok(found);
        }
    }
}
