//! Who is asking, as the server sees it.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// What a token is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Schedules tasks; cancels, moves and looks at them.
    Produce,
    /// Reserves deliveries and settles them.
    Consume,
    /// Looks at everything and changes nothing.
    View,
    /// Looks at everything; pauses, resumes, replays, purges, cancels and moves.
    Operate,
    /// May do everything: settings and deletion too.
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

/// Who is asking and what they may do, and whom they ask. Where no token is needed, everybody may do everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Me {
    /// The name of the token, as it stands in logs.
    pub name: String,
    /// What it is good for.
    pub roles: Vec<Role>,
    /// For which topics and queues: patterns in which `*` stands for any characters.
    pub topics: Vec<String>,
    /// The version of the server.
    pub version: String,
    /// The time by the server's clock.
    pub now: Time,
}
