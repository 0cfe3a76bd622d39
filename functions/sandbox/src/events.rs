//! `POST /v1/test/events`: emits the example of any event, about a person of the workspace.

use domain::endpoint::EndpointStatus;
use domain::event::Person;
use domain::id::EndpointId;
use domain::id_kind::IdKind;
use domain::sandbox::{EVENTS_PER_DAY, EventSubject, SandboxEvent, SentEvent};
use edge::{About, Command, Decision, Inbound, KeyHolder, Problem, Reply, crm};
use futures::future::try_join;
use runtime::random_bytes;
use store::sandbox_quota::SandboxCount;

use crate::App;

pub(crate) struct Emit;

/// The event to emit.
pub(crate) struct EmitRead {
    wanted: SandboxEvent,
    /// The person of the workspace that the event is about; `None`: the example's.
    person: Option<Person>,
    /// The enabled endpoints.
    endpoints: Vec<EndpointId>,
    random: [u8; 12],
}

impl Command for Emit {
    type App = App;
    type Caller = KeyHolder;
    type Snapshot = EmitRead;

    async fn read(app: &App, caller: &KeyHolder, inbound: &Inbound) -> Result<EmitRead, Problem> {
        let wanted = SandboxEvent::parse(inbound.json()?)?;
        let endpoints = async { Ok(app.endpoints.list_with_health(&caller.key.coach_id).await?) };
        let (person, endpoints) = try_join(person(app, caller, &wanted.subject), endpoints).await?;
        let enabled = endpoints.into_iter().map(|found| found.endpoint);
        let enabled = enabled.filter(|endpoint| endpoint.status == EndpointStatus::Enabled);
        Ok(EmitRead {
            wanted,
            person,
            endpoints: enabled.map(|endpoint| endpoint.id).collect(),
            random: random_bytes(),
        })
    }

    async fn count(app: &App, caller: &KeyHolder, _: &EmitRead) -> Result<(), Problem> {
        app.count(caller, SandboxCount::Events, 1, EVENTS_PER_DAY).await
    }

    fn decide(_: &App, caller: &KeyHolder, found: &EmitRead) -> Result<Decision, Problem> {
        let EmitRead { wanted, person, endpoints, random } = found;
        let event = wanted.event(&caller.key.coach_id, person.clone(), endpoints.clone(), caller.now, *random);
        let reply = Reply::accepted(&SentEvent { id: event.id.clone() })?;
        Ok(Decision::reply(About::Nobody, reply).events([event]))
    }
}

/// Reads the person that an event is to be about.
async fn person(app: &App, caller: &KeyHolder, subject: &EventSubject) -> Result<Option<Person>, Problem> {
    let coach = &caller.key.coach_id;
    match subject {
        EventSubject::Example => Ok(None),
        EventSubject::Client(id) => match app.clients.get(id).await? {
            Some(found) if found.client.coach_id == *coach => Ok(Some(Person::client(&found.client))),
            Some(_) | None => Err(Problem::not_found(IdKind::Client)),
        },
        EventSubject::Contact(id) => {
            let state = app.contacts.state(coach, *id).await?;
            Ok(Some(Person::contact(crm::found(&state)?.contact())))
        }
    }
}
