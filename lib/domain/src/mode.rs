//! The mode of a deployment. A sandbox is a deployment of its own, so no record knows its mode.

use std::str::FromStr;

crate::named! {
    /// The records that a deployment holds.
    Mode {
        /// Records of coaches' businesses.
        Live = "live",
        /// Invented records: the deployment is a sandbox.
        Test = "test",
    }
}

impl Mode {
    /// Environment variable with the mode.
    pub const SETTING: &str = "SERVICE_MODE";
    /// Environment variable with the address of the deployment of the other mode, if there is one.
    pub const OTHER_ADDRESS: &str = "OTHER_MODE_ADDRESS";
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}
