//! `find`: whose an id is.

use serde::Serialize;
use store::operating::Overview;
use store::operating::find::Found;

use crate::connection::Operator;
use crate::failure::Failure;
use crate::options;
use crate::output::Answer;
use crate::progress::Said;

#[derive(Serialize)]
struct Matches {
    matches: Vec<Found>,
}

pub(crate) async fn find(operator: &Operator, wanted: &options::Find) -> Result<Answer, Failure> {
    let overview = Overview::new(&operator.env, &operator.db)?;
    let matches = overview.find(&wanted.text, &Said).await?;
    if matches.is_empty() {
        return Err(Failure::not_found("nothing has this id; a key is found by its last four characters"));
    }
    Answer::of(&Matches { matches })
}
