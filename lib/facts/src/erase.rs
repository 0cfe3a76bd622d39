//! Erasure of persons: a client and the contacts that the client was, or contacts that were merged into erased ones.
//!
//! Work that grows with the stored data is done in parts. Deliveries and events of the feed go step by step: the
//! progress names the step and the last sort key. The whole is repeated later, for what was under way.

use std::collections::{BTreeMap, BTreeSet};

use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId, ContactId};
use domain::time::Timestamp;
use futures::future::try_join;
use futures::stream::{StreamExt, TryStreamExt, iter};
use store::StoreError;
use store::contact::ErasedContacts;
use store::contact_ref::ContactRef;
use store::delivery::{ErasureProgress, SubjectIndex};
use store::event_feed::MAX_ERASED_CONTACTS;

use crate::FactStore;
use crate::outcome::{Next, Outcome};

/// Limit of the recorded answers that one message removes per contact.
const MAX_FORGOTTEN: i32 = 50;
/// Contacts whose answers are removed at once.
const CONCURRENT_CONTACTS: usize = 16;
/// Steps that one message carries out. Most have nothing to erase, and cost one Query each.
const MAX_STEPS: usize = 100;
/// Separates the step and the sort key of a progress. No name of a step has it.
const SEPARATOR: char = ' ';

/// Erases a client everywhere. The tombstone comes first: work under way finds the tombstone, or a later pass finds the
/// work.
pub(crate) async fn client(
    app: &FactStore,
    client: &ClientId,
    occurred_at: FactTime,
    now: Timestamp,
    after: Option<&str>,
) -> Result<Outcome, StoreError> {
    let erased = app.clients.erase(client, now).await?;
    if let Some((claim, claimed_at)) = erased.creation_refs.claim.as_ref().zip(erased.creation_refs.claimed_at) {
        app.claims.erase_creation(claim, client, claimed_at, now).await?;
        app.clients.forget_claim(client).await?;
    }
    let contacts = match &erased.creation_refs.lead {
        Some(lead) => app.contacts.erase(lead, occurred_at, now).await?,
        None => ErasedContacts::default(),
    };
    let records_are_done = async {
        let (records, answers) = try_join(app.records.erase(client), forget_answers(app, &contacts)).await?;
        Ok(records && answers)
    };
    let steps = steps(Some(client), &erased.coaches, &contacts.contacts);
    let (is_done, events) = try_join(records_are_done, events(app, &steps, after, now)).await?;
    Ok(continues(is_done, events, after))
}

/// Erases what is left about contacts that a merge erased.
pub(crate) async fn merged_contacts(
    app: &FactStore,
    erased: &ErasedContacts,
    now: Timestamp,
    after: Option<&str>,
) -> Result<Outcome, StoreError> {
    let steps = steps(None, &BTreeSet::new(), &erased.contacts);
    let (is_done, events) = try_join(forget_answers(app, erased), events(app, &steps, after, now)).await?;
    Ok(continues(is_done, events, after))
}

fn continues(is_done: bool, events: ErasureProgress, after: Option<&str>) -> Outcome {
    Outcome::Continues(match events {
        ErasureProgress::Done if is_done => Next::Pass,
        ErasureProgress::Done => Next::Rest(after.map(str::to_owned)),
        ErasureProgress::Until(last) => Next::Rest(Some(last)),
    })
}

/// Removes the recorded answers about erased contacts. Returns false if answers or other items about them are left.
async fn forget_answers(app: &FactStore, erased: &ErasedContacts) -> Result<bool, StoreError> {
    let mut forgetting = Vec::new();
    for contact in &erased.contacts {
        forgetting.push(forget_answers_about(app, contact));
    }
    let done: Vec<bool> = iter(forgetting).buffer_unordered(CONCURRENT_CONTACTS).try_collect().await?;
    Ok(!erased.has_more && done.into_iter().all(|is_done| is_done))
}

async fn forget_answers_about(app: &FactStore, contact: &ContactRef) -> Result<bool, StoreError> {
    let answers = app.claims.about(contact, MAX_FORGOTTEN).await?;
    for answer in &answers {
        app.claims.erase(answer, contact).await?;
    }
    Ok(answers.len() < MAX_FORGOTTEN as usize)
}

/// A part of the erasure of events.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// The deliveries that an index has for a person.
    Deliveries(SubjectIndex, String),
    /// The events of a coach's feed that name the client or these contacts.
    Feed(CoachId, Option<ClientId>, Vec<ContactId>),
}

/// The steps that erase the events of a client with these coaches, and of contacts.
fn steps(client: Option<&ClientId>, coaches: &BTreeSet<CoachId>, contacts: &[ContactRef]) -> Vec<Step> {
    let mut steps = Vec::new();
    steps.extend(client.map(|client| Step::Deliveries(SubjectIndex::Named, client.as_str().to_owned())));
    let mut in_feeds: BTreeMap<&CoachId, Vec<ContactId>> = coaches.iter().map(|coach| (coach, Vec::new())).collect();
    for contact in contacts {
        for index in [SubjectIndex::Named, SubjectIndex::Merged] {
            steps.push(Step::Deliveries(index, contact.to_string()));
        }
        in_feeds.entry(&contact.coach_id).or_default().push(contact.contact_id);
    }
    for (coach, contacts) in in_feeds {
        let feed = |client: Option<&ClientId>, contacts: &[ContactId]| {
            Step::Feed(coach.clone(), client.cloned(), contacts.to_vec())
        };
        let (first, others) = contacts.split_at(contacts.len().min(MAX_ERASED_CONTACTS));
        steps.push(feed(client, first));
        steps.extend(others.chunks(MAX_ERASED_CONTACTS).map(|contacts| feed(None, contacts)));
    }
    steps
}

impl Step {
    /// The name of the step in a progress.
    fn name(&self) -> String {
        match self {
            Self::Deliveries(index, subject) => format!("{}:{subject}", index.name()),
            Self::Feed(coach, _, contacts) => {
                format!("feed:{coach}:{}", contacts.first().map(ContactId::to_string).unwrap_or_default())
            }
        }
    }
}

/// Carries out the steps from a progress on: at most [`MAX_STEPS`], or until one is not finished within its pages.
async fn events(
    app: &FactStore,
    steps: &[Step],
    progress: Option<&str>,
    now: Timestamp,
) -> Result<ErasureProgress, StoreError> {
    let (first, mut after) = position(steps, progress);
    for (taken, step) in steps[first..].iter().enumerate() {
        if taken == MAX_STEPS {
            return Ok(ErasureProgress::Until(format!("{}{SEPARATOR}", step.name())));
        }
        let erased = match step {
            Step::Deliveries(index, subject) => app.deliveries.erase(*index, subject, after, now).await?,
            Step::Feed(coach, client, contacts) => app.feed.erase(coach, client.as_ref(), contacts, after).await?,
        };
        if let ErasureProgress::Until(last) = erased {
            return Ok(ErasureProgress::Until(format!("{}{SEPARATOR}{last}", step.name())));
        }
        after = None;
    }
    Ok(ErasureProgress::Done)
}

/// The step that a progress names, and the sort key in it. The steps begin anew if contacts that joined since have
/// replaced the step.
fn position<'a>(steps: &[Step], progress: Option<&'a str>) -> (usize, Option<&'a str>) {
    let found = progress.and_then(|progress| progress.split_once(SEPARATOR)).and_then(|(name, after)| {
        let step = steps.iter().position(|step| step.name() == name)?;
        Some((step, Some(after).filter(|after| !after.is_empty())))
    });
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use domain::id::new_uuid;

    use super::*;

    #[test]
    fn each_person_and_each_feed_has_steps_whose_names_differ() {
        let coach = |id: &str| CoachId::parse(id).unwrap();
        let contact = |n: i64| ContactRef::new(&coach("ada"), ContactId(new_uuid(n, [0; 10])));
        let contacts: Vec<_> = (0..100).map(contact).collect();
        let client = ClientId::parse("c1").unwrap();
        let steps = steps(Some(&client), &BTreeSet::from([coach("ada"), coach("eve")]), &contacts);
        let names: BTreeSet<String> = steps.iter().map(Step::name).collect();
        assert_eq!(names.len(), steps.len());
        assert!(names.iter().all(|name| !name.contains(SEPARATOR)));
        let feeds: Vec<_> = steps.iter().filter(|step| matches!(step, Step::Feed(..))).collect();
        assert_eq!((steps.len(), feeds.len()), (1 + 200 + 4, 4));
        let with_client = feeds.iter().filter(|step| matches!(step, Step::Feed(_, Some(_), _))).count();
        assert_eq!(with_client, 2, "each feed is read once for the client");
    }

    #[test]
    fn a_progress_leads_to_its_step_and_a_replaced_step_to_the_first() {
        let coach = CoachId::parse("ada").unwrap();
        let contact = |n: i64| ContactRef::new(&coach, ContactId(new_uuid(n, [0; 10])));
        let before = steps(None, &BTreeSet::new(), &[contact(2)]);
        assert_eq!(position(&before, None), (0, None));
        for (index, step) in before.iter().enumerate() {
            assert_eq!(position(&before, Some(&format!("{} EVENT#1", step.name()))), (index, Some("EVENT#1")));
            assert_eq!(position(&before, Some(&format!("{} ", step.name()))), (index, None));
        }
        // The feed's step is named by its first contact.
        let joined = steps(None, &BTreeSet::new(), &[contact(1), contact(2)]);
        let of_feed = format!("{} EVENT#1", before.last().unwrap().name());
        assert_eq!(position(&joined, Some(&of_feed)), (0, None), "no sort key of the feed in a step of deliveries");
    }
}
