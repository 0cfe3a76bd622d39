//! The door of a function: every route behind a credential is answered through it.
//!
//! A route that reads is a function, a route that writes is a [`Command`]. The door checks the caller before either,
//! and makes the response of what they return.

use std::future::Future;

use axum::response::Response;
use futures::future::{BoxFuture, join};
use runtime::{BoxError, Environment};
use store::Db;
use store::vault::Vault;

use crate::caller::{Admitted, Caller, Refused, Writer};
use crate::command::{Command, EarlyCommand, Runner, Steps};
use crate::inbound::Inbound;
use crate::problem::Problem;
use crate::reply::Reply;

/// The door to the operations over an `App`, for callers of one kind. `R` runs the writes.
pub struct Door<C: Caller, App, R = ()> {
    gate: C::Gate,
    app: App,
    runner: R,
}

/// A handler of axum.
pub trait Handler: Fn(Inbound) -> BoxFuture<'static, Response> + Clone + Send + Sync + 'static {}

impl<F: Fn(Inbound) -> BoxFuture<'static, Response> + Clone + Send + Sync + 'static> Handler for F {}

impl<C: Caller, App> Door<C, App> {
    /// A door to operations that read.
    pub fn new(env: &Environment, db: &Db, app: App) -> Result<Self, BoxError> {
        Ok(Self { gate: C::gate(env, db)?, app, runner: () })
    }

    /// The same door, to operations that write, too.
    pub fn writing(self, env: &Environment, db: &Db, vault: &Vault) -> Result<Door<C, App, Runner>, BoxError> {
        Ok(Door { gate: self.gate, app: self.app, runner: Runner::new(env, db, vault)? })
    }
}

impl<C: Caller, App: Clone + Send + Sync + 'static, R> Door<C, App, R> {
    /// The handler of a route that reads.
    pub fn read<W, F>(&self, work: W) -> impl Handler + use<C, App, R, W, F>
    where
        W: Fn(App, C, Inbound) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Reply, Problem>> + Send + 'static,
    {
        self.read_early(|_, _| async {}, move |app, caller, inbound, ()| work(app, caller, inbound))
    }

    /// The handler of a route that reads. `early` reads what needs no caller ([`Caller::admit`]).
    pub fn read_early<T, E, FE, W, F>(&self, early: E, work: W) -> impl Handler + use<C, App, R, T, E, FE, W, F>
    where
        T: Send + 'static,
        E: Fn(App, Inbound) -> FE + Clone + Send + Sync + 'static,
        FE: Future<Output = T> + Send + 'static,
        W: Fn(App, C, Inbound, T) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Reply, Problem>> + Send + 'static,
    {
        let (gate, app) = (self.gate.clone(), self.app.clone());
        move |inbound: Inbound| -> BoxFuture<'static, Response> {
            let (gate, app, early, work) = (gate.clone(), app.clone(), early.clone(), work.clone());
            Box::pin(async move {
                let admission = C::admit(&gate, &inbound, early(app.clone(), inbound.clone())).await;
                let answer = async |caller, found| {
                    inbound.check_size()?;
                    work(app, caller, inbound.clone(), found).await
                };
                answered(&inbound, admission, answer).await
            })
        }
    }
}

impl<C: Writer, App: Clone + Send + Sync + 'static> Door<C, App, Runner> {
    /// The handler of a route that writes.
    pub fn write<W: Command<Caller = C, App = App>>(&self) -> impl Handler + use<C, App, W> {
        let (gate, app, runner) = (self.gate.clone(), self.app.clone(), self.runner.clone());
        move |inbound: Inbound| -> BoxFuture<'static, Response> {
            let (gate, app, runner) = (gate.clone(), app.clone(), runner.clone());
            Box::pin(async move {
                let admission = C::admit(&gate, &inbound, async {}).await;
                let run = async |caller, ()| runner.run::<W>(&app, &caller, &inbound, None).await;
                answered(&inbound, admission, run).await
            })
        }
    }

    /// The handler of a route that writes in steps.
    pub fn steps<S: Steps<Caller = C, App = App>>(&self) -> impl Handler + use<C, App, S> {
        let (gate, app, runner) = (self.gate.clone(), self.app.clone(), self.runner.clone());
        move |inbound: Inbound| -> BoxFuture<'static, Response> {
            let (gate, app, runner) = (gate.clone(), app.clone(), runner.clone());
            Box::pin(async move {
                let admission = C::admit(&gate, &inbound, async {}).await;
                let run = async |caller, ()| runner.run_steps::<S>(&app, &caller, &inbound).await;
                answered(&inbound, admission, run).await
            })
        }
    }

    /// The handler of a route that writes, whose first read needs no caller ([`Caller::admit`]).
    pub fn write_early<W: EarlyCommand<Caller = C, App = App>>(&self) -> impl Handler + use<C, App, W> {
        let (gate, app, runner) = (self.gate.clone(), self.app.clone(), self.runner.clone());
        move |inbound: Inbound| -> BoxFuture<'static, Response> {
            let (gate, app, runner) = (gate.clone(), app.clone(), runner.clone());
            Box::pin(async move {
                let admission = C::admit(&gate, &inbound, W::read_early(&app, &inbound)).await;
                let run = async |caller, found| runner.run::<W>(&app, &caller, &inbound, Some(found)).await;
                answered(&inbound, admission, run).await
            })
        }
    }
}

/// Does an admitted caller's work and answers it. A refused caller gets the reason.
async fn answered<C, T>(
    inbound: &Inbound,
    admission: Result<(Admitted<C>, T), Refused>,
    work: impl AsyncFnOnce(C, T) -> Result<Reply, Problem>,
) -> Response {
    let (result, mut quotas) = match admission {
        Err(Refused { problem, quotas }) => (Err(problem), quotas),
        Ok((Admitted { caller, quotas, chore }, found)) => {
            let chore = async {
                if let Some(chore) = chore {
                    chore.await;
                }
            };
            let (result, ()) = join(work(caller, found), chore).await;
            (result, quotas)
        }
    };
    // The limit of an operation is not among the limits of all requests.
    if let Err(Problem::RateLimited(used_up)) = &result
        && !quotas.contains(used_up)
    {
        quotas.push(*used_up);
    }
    let reply = result.unwrap_or_else(|problem| Reply::problem(&problem, inbound));
    reply.with_quotas(&quotas).into_response_for(inbound)
}
