//! The change of a workspace by its integrator.

use serde_json::Value;

use super::first_contents::{MAX_CLIENT_CAP, configuration};
use crate::fields::{Fields, Invalid};
use crate::openapi::{Body, Field};
use crate::tz::{Tz, ZoneName};
use crate::workspace::{Entitlements, Workspace};

const FIELDS: [&str; 4] = ["entitlements", "client_cap", "crm_configured", "time_zone"];
const ENTITLEMENTS: [&str; 3] = ["partner_api", "pro_crm", "gym"];
const MAX_ZONE_CHARS: usize = 64;

/// A change of a workspace. A field that is `None` stays unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspacePatch {
    partner_api: Option<bool>,
    pro_crm: Option<bool>,
    gym: Option<bool>,
    /// `Some(None)`: no limit.
    client_cap: Option<Option<u32>>,
    pub crm_configured: Option<bool>,
    time_zone: Option<ZoneName>,
}

impl WorkspacePatch {
    /// Parses the body of `PATCH /v1/test/workspace`.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        let fields = Fields::body(body)?;
        fields.only(&FIELDS)?;
        if !FIELDS.iter().any(|name| fields.mentions(name)) {
            let names = FIELDS.join(", ");
            return Err(Invalid::whole(format!("The body must set at least one of {names}.")));
        }
        for name in FIELDS.into_iter().filter(|name| *name != "client_cap") {
            if fields.mentions(name) && !fields.has(name) {
                return Err(fields.refuse(name, "must not be null; leave it out to keep it"));
            }
        }
        let rule = format!("must be an integer from 0 to {MAX_CLIENT_CAP}, or null for no limit");
        let client_cap = fields.whole_number("client_cap", u64::from(MAX_CLIENT_CAP));
        let client_cap = client_cap.map_err(|_| fields.refuse("client_cap", rule))?;
        let client_cap = client_cap.map(|cap| u32::try_from(cap).unwrap_or(MAX_CLIENT_CAP));
        let switches = fields.nested("entitlements", |switches| {
            switches.only(&ENTITLEMENTS)?;
            let [partner_api, pro_crm, gym] = ENTITLEMENTS.map(|name| switches.boolean(name));
            Ok((partner_api?, pro_crm?, gym?))
        })?;
        let (partner_api, pro_crm, gym) = switches.unwrap_or_default();
        Ok(Self {
            partner_api,
            pro_crm,
            gym,
            client_cap: fields.mentions("client_cap").then_some(client_cap),
            crm_configured: fields.boolean("crm_configured")?,
            time_zone: fields.parsed("time_zone", MAX_ZONE_CHARS, str::parse::<Tz>)?.map(ZoneName::from),
        })
    }

    pub fn schema() -> Body {
        let switches = Body::new([
            ("partner_api", Field::boolean().about("Without it, partner keys are refused with 402.")),
            ("pro_crm", Field::boolean().about("Without it, CRM keys are refused with 403.")),
            ("gym", Field::boolean().about("Without it, CRM keys are refused with 403.")),
        ]);
        let crm = "True chooses the test pipeline and lays the first contents of the CRM. False is a CRM that the coach \
                   has not set up.";
        Body::change([
            ("entitlements", Field::object(switches.closed()).about("What the workspace may use. Others stay.")),
            (
                "client_cap",
                Field::whole_number(u64::from(MAX_CLIENT_CAP)).about("Most clients of the plan. Null: no limit."),
            ),
            ("crm_configured", Field::boolean().about(crm)),
            ("time_zone", Field::text(MAX_ZONE_CHARS).about("The IANA name of the workspace's zone.")),
        ])
        .clearing(&["client_cap"])
    }

    /// Returns the workspace after the change.
    pub fn apply(&self, workspace: &Workspace) -> Workspace {
        let known = workspace.entitlements;
        Workspace {
            entitlements: Entitlements {
                partner_api: self.partner_api.unwrap_or(known.partner_api),
                pro_crm: self.pro_crm.unwrap_or(known.pro_crm),
                gym: self.gym.unwrap_or(known.gym),
            },
            client_cap: self.client_cap.unwrap_or(workspace.client_cap),
            crm: match self.crm_configured {
                Some(is_configured) => is_configured.then(configuration),
                None => workspace.crm.clone(),
            },
            time_zone: self.time_zone.clone().unwrap_or_else(|| workspace.time_zone.clone()),
            ..workspace.clone()
        }
    }
}
