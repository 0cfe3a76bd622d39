//! The facts of a client that the table keeps with their times, for operators.

use chrono::NaiveDate;
use domain::fact_time::FactTime;
use domain::id::ClientId;
use domain::time::Timestamp;

use super::{RecordReader, check_in, daily_log, dose, partition};
use crate::db::{Item, StoreError, query_all, s, sk_of, text};

/// A fact that is kept.
pub(crate) struct KeptFact {
    /// The name of the fact, such as `dose.logged`.
    pub(crate) name: &'static str,
    pub(crate) at: Timestamp,
    /// The id of the check-in or dose log.
    pub(crate) id: Option<String>,
    /// The date of the daily log or dose log.
    pub(crate) date: Option<NaiveDate>,
}

impl RecordReader {
    /// Reads the facts of a client, in no order. A deleted check-in or dose log has no time any more.
    pub(crate) async fn history(&self, client: &ClientId) -> Result<Vec<KeptFact>, StoreError> {
        Ok(self.items(client).await?.iter().flat_map(facts_of).collect())
    }

    /// Reads all items of a client.
    pub(crate) async fn items(&self, client: &ClientId) -> Result<Vec<Item>, StoreError> {
        query_all(self.table.query("pk = :pk", [(":pk", s(partition(client)))]).consistent_read(true)).await
    }
}

/// The facts that an item keeps.
fn facts_of(item: &Item) -> Vec<KeptFact> {
    let sk = sk_of(item);
    if let Some(id) = sk.strip_prefix(check_in::PREFIX) {
        let fact = |name, time: &str| {
            let at = Timestamp::parse(text(item, time))?;
            Some(KeptFact { name, at, id: Some(id.to_owned()), date: None })
        };
        let facts = [fact("check_in.submitted", "submitted_at"), fact("check_in.reviewed", "reviewed_at")];
        return facts.into_iter().flatten().collect();
    }
    if let Some(id) = sk.strip_prefix(dose::LOG_PREFIX) {
        let at = FactTime::parse(text(item, "set_at")).map(FactTime::timestamp);
        let date = text(item, "date").parse().ok();
        return at.map(|at| KeptFact { name: "dose.logged", at, id: Some(id.to_owned()), date }).into_iter().collect();
    }
    let dates = daily_log::last_facts_of(item).into_iter();
    let log = |(date, at, is_saved)| {
        let name = if is_saved { "daily_log.saved" } else { "daily_log.deleted" };
        KeptFact { name, at, id: None, date: Some(date) }
    };
    dates.map(log).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::n;

    fn item(sk: &str, attributes: &[(&str, aws_sdk_dynamodb::types::AttributeValue)]) -> Item {
        let attributes = attributes.iter().cloned().chain([("sk", s(sk))]);
        attributes.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn an_item_keeps_the_facts_whose_times_it_has() {
        let at = "2026-05-01T07:00:00.000Z";
        let read = |item: Item| {
            let mut facts: Vec<String> = facts_of(&item)
                .into_iter()
                .map(|fact| format!("{} {} {:?} {:?}", fact.name, fact.at, fact.id, fact.date))
                .collect();
            facts.sort_unstable();
            facts.join("\n")
        };
        let submitted = item("CHECKIN#k1", &[("submitted_at", s(at))]);
        assert_eq!(read(submitted), format!("check_in.submitted {at} Some(\"k1\") None"));
        assert_eq!(read(item("CHECKIN#k1", &[])), "");
        let logged = item("DOSELOG#l1", &[("set_at", s("2026-05-01T07:00:00.000000009Z")), ("date", s("2026-04-30"))]);
        assert_eq!(read(logged), format!("dose.logged {at} Some(\"l1\") Some(2026-04-30)"));
        let year = [("d0430", n("1777618800000.5")), ("d0501", n("-1777618800000")), ("logged", n(430))];
        assert_eq!(
            read(item("LOGS#2026", &year)),
            format!("daily_log.deleted {at} None Some(2026-05-01)\ndaily_log.saved {at} None Some(2026-04-30)")
        );
        assert_eq!(read(item("DOSES_WATCH", &[("d0430", n(5))])), "");
    }
}
