//! Who is asking, as the server sees it.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Schedule tasks; cancel, move, and look at them.
    Produce,
    /// Reserve deliveries and settle them.
    Consume,
    /// Look at everything, change nothing.
    View,
    /// Look at everything; pause, resume, replay, purge, cancel, and move.
    Operate,
    /// Everything, including settings and deletion.
    Admin,
}

impl Role {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Produce => "produce",
            Role::Consume => "consume",
            Role::View => "view",
            Role::Operate => "operate",
            Role::Admin => "admin",
        }
    }
}

/// Who the caller is and what they may do, and which server this is. If no token is needed, everyone may do everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Me {
    /// The name of the token, as it appears in logs.
    pub name: String,
    /// What it allows.
    pub roles: Vec<Role>,
    /// The topics and queues it covers: patterns in which `*` stands for any characters.
    pub topics: Vec<String>,
    /// The version of the server.
    pub version: String,
    /// The time on the server's clock.
    pub now: Time,
}
