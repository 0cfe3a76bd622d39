//! The command line.

use std::error::Error;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};
use domain::id::{ClientId, CoachId, DeliveryId, EndpointId, KeyId, MAX_ID_CHARS};
use domain::visible::does_not_show;

use crate::failure::{Failure, is_whole_key};

/// Longest word of a command line.
const MAX_WORD_BYTES: usize = 24;
/// Most characters of a reason.
const MAX_REASON_CHARS: usize = 200;

/// Looks at a deployed stack of the Partner API, and acts on it.
///
/// It runs with your own AWS credentials and region. It prints ids, hosts and times. What acts needs --reason, asks
/// back, and leaves a line in the coach's audit trail.
#[derive(Debug, Parser)]
#[command(name = "operate", version, about, max_term_width = 100)]
pub(crate) struct Options {
    /// The stack, by its name in CloudFormation.
    #[arg(long, global = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) stack: Option<String>,

    /// The local stack of this machine.
    #[arg(long, global = true)]
    pub(crate) local: bool,

    /// Port of the local stack's AWS endpoint.
    #[arg(long, global = true, value_name = "N", default_value_t = 4566)]
    pub(crate) aws_port: u16,

    /// Prints one JSON object, failures too: {code, error}.
    #[arg(long, global = true, overrides_with = "json")]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Finds whose an id is: of a coach, client, contact, key, endpoint, delivery, event or request.
    Find(Find),
    /// Shows a coach: clients, keys, endpoints, what waits to be sent.
    Coach {
        #[arg(value_parser = CoachId::parse)]
        id: CoachId,
    },
    /// Shows a client, or exports all that is stored about one.
    Client(Client),
    /// Shows a delivery with its attempts, or sends it again.
    Delivery(Delivery),
    /// Shows the outbox and all queues.
    Feed,
    /// Dead letters: facts that could not be stored, and orders of deliveries that failed for a day.
    Dead {
        #[command(subcommand)]
        command: DeadCommand,
    },
    /// Disables or enables a webhook endpoint.
    Endpoint {
        #[command(subcommand)]
        command: EndpointCommand,
    },
    /// Revokes a key.
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Counts again what the service keeps a count of.
    Rebuild {
        #[command(subcommand)]
        command: RebuildCommand,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Find {
    /// An id; a key as lists show it (svc_live_…3f9a), or its last four characters; or the SHA-256 of an e-mail
    /// address, 64 hexadecimal digits of its form in lower case with an ASCII domain.
    #[arg(value_parser = findable)]
    pub(crate) text: String,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Client {
    #[command(subcommand)]
    pub(crate) command: Option<ClientCommand>,

    #[arg(required = true, value_parser = ClientId::parse)]
    pub(crate) id: Option<ClientId>,

    /// Also shows what is stored about the client by time, the latest 1,000 lines.
    #[arg(long)]
    pub(crate) timeline: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Writes everything that is stored about a client to a file.
    Export {
        #[arg(value_parser = ClientId::parse)]
        id: ClientId,

        /// The file, which must not exist. It is readable by its owner alone.
        #[arg(long, value_name = "FILE")]
        to: PathBuf,

        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Delivery {
    #[command(subcommand)]
    pub(crate) command: Option<DeliveryCommand>,

    #[arg(required = true, value_parser = DeliveryId::parse)]
    pub(crate) id: Option<DeliveryId>,

    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeliveryCommand {
    /// Sends a delivery again that has ended.
    Retry {
        #[arg(value_parser = DeliveryId::parse)]
        id: DeliveryId,

        #[command(flatten)]
        place: Place,

        #[command(flatten)]
        consent: Consent,
    },
}

/// Where a delivery is. Without either, all deliveries are read.
#[derive(Debug, Clone, Args)]
pub(crate) struct Place {
    /// The endpoint of the delivery: spares reading all deliveries.
    #[arg(long, value_name = "ID", value_parser = EndpointId::parse)]
    pub(crate) endpoint: Option<EndpointId>,

    /// The coach of the endpoint: spares reading the records of all coaches.
    #[arg(long, value_name = "ID", value_parser = CoachId::parse)]
    pub(crate) coach: Option<CoachId>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EndpointCommand {
    /// Pauses an endpoint as its coach would. What waits for it ends.
    Disable(EndpointChange),
    /// Enables a disabled endpoint again. Events from now on reach it.
    Enable(EndpointChange),
}

#[derive(Debug, Args)]
pub(crate) struct EndpointChange {
    #[arg(value_parser = EndpointId::parse)]
    pub(crate) id: EndpointId,

    /// The coach of the endpoint: spares reading the records of all coaches.
    #[arg(long, value_name = "ID", value_parser = CoachId::parse)]
    pub(crate) coach: Option<CoachId>,

    #[command(flatten)]
    pub(crate) consent: Consent,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Ends a key at once.
    Revoke {
        #[arg(value_parser = KeyId::parse)]
        id: KeyId,

        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum RebuildCommand {
    /// Counts a coach's clients, and compares the numbers with those that the plan's limit uses.
    Counts {
        #[arg(value_parser = CoachId::parse)]
        coach: CoachId,

        /// Sets both numbers to what was counted.
        #[arg(long, requires = "reason")]
        apply: bool,

        /// Why. The coach reads it, so it holds no personal data.
        #[arg(long, value_name = "TEXT", value_parser = reason)]
        reason: Option<String>,

        /// Does not ask back.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeadQueue {
    /// Facts of the application that could not be stored.
    Facts,
    /// Orders of deliveries that could not be worked on.
    Orders,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadCommand {
    /// Lists the dead letters, at most 10,000.
    List {
        #[arg(long, value_enum)]
        queue: Option<DeadQueue>,
    },
    /// Shows one, with the names of its members.
    Show {
        /// The id of the message, as `dead list` shows it.
        #[arg(value_parser = message_id)]
        id: String,
    },
    /// Sends dead letters to their queues again.
    Redrive {
        /// Ids of messages, as `dead list` shows them.
        #[arg(required_unless_present = "all", conflicts_with = "all", value_parser = message_id)]
        ids: Vec<String>,

        /// All dead letters.
        #[arg(long)]
        all: bool,

        /// With --all: of this queue alone.
        #[arg(long, value_enum, requires = "all", conflicts_with = "ids")]
        queue: Option<DeadQueue>,

        #[command(flatten)]
        consent: Consent,
    },
    /// Deletes dead letters.
    Drop {
        /// Ids of messages, as `dead list` shows them.
        #[arg(required = true, value_parser = message_id)]
        ids: Vec<String>,

        #[command(flatten)]
        consent: Consent,
    },
}

/// The consent to an act, which every command has that acts.
#[derive(Debug, Clone, Args)]
pub(crate) struct Consent {
    /// Why. The coach reads it, so it holds no personal data.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,

    /// Does not ask back.
    #[arg(long)]
    pub(crate) yes: bool,
}

impl Options {
    /// Checks what the options must be together.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match (&self.stack, self.local) {
            (None, false) => Err(Failure::usage("which stack? give --stack NAME, or --local")),
            (Some(_), true) => Err(Failure::usage("--stack and --local exclude each other")),
            (Some(_), false) | (None, true) => Ok(()),
        }
    }
}

/// The first line of an error about the command line, without its label. A value that was typed may be anything, an
/// address too, and is left out unless it looks like a word of the command line.
pub(crate) fn line_of(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing; see --help".to_owned();
    }
    let text = error.render().to_string();
    let line = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let line = match error.kind() {
        ErrorKind::ValueValidation => {
            let rule = error.source().map(ToString::to_string).unwrap_or_default();
            format!("{} {rule}", context(ContextKind::InvalidArg))
        }
        ErrorKind::InvalidValue if !is_word(context(ContextKind::InvalidValue)) => {
            format!("{} has another value than those of --help", context(ContextKind::InvalidArg))
        }
        ErrorKind::InvalidSubcommand if !is_word(context(ContextKind::InvalidSubcommand)) => {
            "unknown command".to_owned()
        }
        ErrorKind::UnknownArgument if !is_word(context(ContextKind::InvalidArg)) => "unexpected argument".to_owned(),
        _ => line.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    format!("{line}; see --help")
}

/// Returns true for a command, an option with its placeholder, or what is mistyped for one.
fn is_word(typed: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '<' | '>' | ' ' | '.' | '[' | ']');
    typed.len() <= MAX_WORD_BYTES && typed.chars().all(is_plain)
}

fn reason(text: &str) -> Result<String, &'static str> {
    let is_short = (1..=MAX_REASON_CHARS).contains(&text.chars().count());
    if is_short && text.trim() != "" && !text.contains(|c| c != ' ' && does_not_show(c)) {
        Ok(text.to_owned())
    } else {
        Err("must have 1 to 200 characters that show, and blanks between them")
    }
}

/// An id, the id of a request, a hash, or a key as lists show it.
fn findable(text: &str) -> Result<String, &'static str> {
    if is_whole_key(text) {
        return Err("is a whole key: give its last four characters");
    }
    let text = text.replace("...", "…");
    let is_findable = |c: char| c.is_ascii_graphic() && c != '@' || c == '…';
    if (1..=MAX_ID_CHARS).contains(&text.chars().count()) && text.chars().all(is_findable) {
        Ok(text)
    } else {
        Err("must be an id of 1 to 128 characters, the end of a key, or the SHA-256 of an e-mail address")
    }
}

/// The id of a message in a queue.
fn message_id(text: &str) -> Result<String, &'static str> {
    CoachId::parse(text).map(|_| text.to_owned()).map_err(|_| "must be an id as `dead list` shows it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words = std::iter::once("operate").chain(line.split(' '));
        let options = Options::try_parse_from(words).map_err(|error| line_of(&error))?;
        options.check().map(|()| options).map_err(|failure| failure.to_string())
    }

    #[rstest::rstest]
    #[case("--local feed")]
    #[case("feed --stack partner-api --json")]
    #[case("client c1 --timeline --local")]
    #[case("client export c1 --to f --reason r --local")]
    #[case("delivery dlv_1 --endpoint we_1 --local")]
    #[case("delivery retry dlv_1 --reason r --yes --local")]
    #[case("dead redrive --all --queue facts --reason r --local")]
    #[case("rebuild counts ada --local")]
    fn options_stand_before_or_after_the_command(#[case] line: &str) {
        parse(line).unwrap();
    }

    #[rstest::rstest]
    #[case("feed", "--stack")]
    #[case("feed --local --stack x", "exclude")]
    #[case("--local", "subcommand")]
    #[case("--local frobnicate", "frobnicate")]
    #[case("--local coach a/b", "<ID>")]
    #[case("--local dead", "a command is missing")]
    #[case("--local find svc_live_0p6JfZy2kFhzuZgbamaehaiX6ZwMlooy", "last four")]
    #[case("--local find ada@example.com", "SHA-256")]
    #[case("--local client", "ID")]
    #[case("--local key revoke key_1", "--reason")]
    #[case("--local dead redrive --reason r", "IDS")]
    #[case("--local dead redrive m1 --all --reason r", "--all")]
    #[case("--local dead redrive m1 --queue facts --reason r", "--queue")]
    #[case("--local dead drop --reason r", "IDS")]
    #[case("--local dead list --queue mails", "mails")]
    #[case("--local rebuild counts ada --apply", "--reason")]
    fn a_line_that_cannot_work_is_refused_in_one_line_that_names_the_cause(#[case] line: &str, #[case] cause: &str) {
        let refused = parse(line).unwrap_err();
        assert!(refused.contains(cause) && !refused.contains('\n'), "{refused}");
    }

    #[rstest::rstest]
    #[case("--local coach ada@example.com")]
    #[case("--local ada@example.com")]
    #[case("--local feed ada@example.com")]
    #[case("--local svc_live_0p6JfZy2kFhzuZgbamaehaiX6ZwMlooy")]
    #[case("--local key revoke key_1 --reason ada@example.com\u{1b}")]
    fn what_was_typed_is_not_repeated(#[case] line: &str) {
        let refused = parse(line).unwrap_err();
        assert!(!refused.contains("example") && !refused.contains("0p6J"), "{refused}");
    }

    #[test]
    fn three_dots_stand_for_the_sign_in_a_key() {
        let Command::Find(Find { text }) = parse("--local find svc_live_...looy").unwrap().command else { panic!() };
        assert_eq!(text, "svc_live_…looy");
    }

    #[test]
    fn a_reason_has_something_to_read() {
        for bad in ["", "  ", "\u{200b}", "a\u{202e}b", "two\nlines", &"x".repeat(MAX_REASON_CHARS + 1)] {
            assert!(reason(bad).is_err(), "{bad:?}");
        }
        assert!(reason(&"ü".repeat(MAX_REASON_CHARS)).is_ok());
    }
}
