//! The text on stdout: addresses, keys, commands to try, and the line `ready`.

use std::io::Write;

use domain::mode::Mode;
use serde_json::json;

use super::seed::load_or_create;
use super::{COACH_ID, Demo};
use crate::log::LogState;
use crate::running::Running;
use crate::template::REGION;

/// Width of the left column.
const LABEL: usize = 14;

/// Creates the demo workspace unless it exists, and prints its addresses and keys, then one line of the log.
pub(crate) async fn seed_and_print(running: &Running, log: &LogState) {
    match log.quietly(load_or_create(running)).await {
        Ok(demo) => {
            print(&with_demo(running, &demo));
            tracing::info!(coach_id = COACH_ID, "the demo workspace is ready");
        }
        Err(error) => {
            print_bare(running);
            tracing::error!("cannot create the demo workspace: {error}");
        }
    }
}

/// Prints the addresses.
pub fn print_bare(running: &Running) {
    print(&format!("{}\n{}", addresses(running), ENDING));
}

/// Prints the last line, which programs wait for: the addresses as JSON.
pub fn print_ready(running: &Running) {
    let stack = &running.stack;
    print(&format!("ready {}\n", json!({ "base_url": stack.base_url, "aws_url": stack.aws_url })));
}

const ENDING: &str = "  Ctrl-C ends it.\n\n";

fn addresses(running: &Running) -> String {
    let stack = &running.stack;
    let sandbox = match running.mode {
        Mode::Live => "",
        Mode::Test => ": a sandbox, where nothing is real",
    };
    let data = stack.state.path().map_or_else(|| "not kept".to_owned(), |path| path.display().to_string());
    let aws = format!("{}  (region {REGION}, any credentials)", stack.aws_url);
    format!(
        "\n  Partner API, local stack{sandbox}\n\n{}{}{}{}",
        line("API", &stack.base_url),
        line("Documentation", &format!("{}/docs", stack.base_url)),
        line("AWS endpoint", &aws),
        line("Data", &data)
    )
}

fn with_demo(running: &Running, demo: &Demo) -> String {
    let base = &running.stack.base_url;
    let token = running.stack.gateway.token(COACH_ID).unwrap_or_default();
    let mut text = addresses(running);
    text.push('\n');
    text.push_str(&line("Partner key", &demo.partner_key));
    text.push_str(&line("CRM key", &demo.crm_key));
    text.push_str(&line("Webhooks", &format!("{base}/_local/receiver")));
    text.push_str(&line("Settings", &format!("{base}/_local/settings#token={token}")));
    text.push_str(&format!(
        "\n  Try\n\n    curl -i {base}/v1/ping -H 'Authorization: Bearer {key}'\n\n    \
         curl -i {base}/v1/clients -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \\\n         \
         -d '{{\"email\": \"ada@example.com\", \"full_name\": \"Ada Lovelace\", \"phone\": \"+1 212 555 0100\"}}'\n\n    \
         curl -s {base}/_local/receiver.json\n\n    \
         claude mcp add --transport http partner-api {base}/mcp --header 'Authorization: Bearer {key}'\n\n{ENDING}",
        key = demo.partner_key
    ));
    text
}

fn line(label: &str, value: &str) -> String {
    format!("  {label:LABEL$}{value}\n")
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // The reader may have closed the pipe, which must not end the stack.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
