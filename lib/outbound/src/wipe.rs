//! Removals of a workspace's test data: the message that asks for the next part, and the start of a removal.

use domain::id::{CoachId, WipeId, new_uuid};
use domain::time::Timestamp;
use runtime::{BoxError, Environment, random_bytes};
use serde::{Deserialize, Serialize};
use store::Db;
use store::key::Keys;
use store::workspace::{Wipe, Workspaces};

use crate::queue::Queue;

/// Delay of the order that is sent before the state of a removal is stored: longer than a request takes.
const SAFE_DELAY_S: i32 = 30;

/// An order for the next part of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WipeOrder {
    pub coach_id: CoachId,
    pub job: WipeId,
}

/// The queue of removals.
#[derive(Clone)]
pub struct WipeQueue {
    queue: Queue,
    workspaces: Workspaces,
    keys: Keys,
}

impl WipeOrder {
    /// Parses the body of a message.
    pub fn read(body: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(body)
    }
}

impl WipeQueue {
    /// The queue whose URL is in `WIPE_QUEUE_URL`.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self {
            queue: Queue::new(env, "WIPE_QUEUE_URL")?,
            workspaces: Workspaces::new(env, db)?,
            keys: Keys::new(env, db)?,
        })
    }

    /// Starts a removal, or joins the one that is running. From then on the workspace's writes are refused.
    pub async fn start(&self, coach: &CoachId, now: Timestamp) -> Result<WipeId, BoxError> {
        let job = WipeId::from_uuid(new_uuid(now.ms(), random_bytes()));
        // The first message comes before the state: a state without a message would refuse writes for ever.
        self.send(&WipeOrder { coach_id: coach.clone(), job: job.clone() }, SAFE_DELAY_S).await?;
        let stored = self.workspaces.begin_wipe(coach, &Wipe::new(job.clone(), now)).await?;
        self.keys.copy_entitlements(&stored, now).await?;
        let job = stored.wipe.map_or(job, |wipe| wipe.job);
        self.send(&WipeOrder { coach_id: coach.clone(), job: job.clone() }, 0).await?;
        Ok(job)
    }

    /// Sends an order, which arrives after `delay_s` seconds.
    pub async fn send(&self, order: &WipeOrder, delay_s: i32) -> Result<(), BoxError> {
        Ok(self.queue.send(serde_json::to_string(order)?, delay_s).await?)
    }
}
