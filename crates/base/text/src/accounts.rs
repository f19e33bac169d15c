//! Names of users and groups, and a cache of them.

use std::collections::HashMap;

pub use millstream_system::accounts::{group_id, group_name, user_id, user_name};

/// The names looked up so far.
#[derive(Debug, Default)]
pub struct AccountNames {
    users: HashMap<u32, Option<Vec<u8>>>,
    groups: HashMap<u32, Option<Vec<u8>>>,
}

impl AccountNames {
    /// The name of a user.
    pub fn user(&mut self, uid: u32) -> Option<&[u8]> {
        self.users.entry(uid).or_insert_with(|| user_name(uid)).as_deref()
    }

    /// The name of a group.
    pub fn group(&mut self, gid: u32) -> Option<&[u8]> {
        self.groups.entry(gid).or_insert_with(|| group_name(gid)).as_deref()
    }

    /// The names of a user and of a group.
    pub fn both(&mut self, uid: u32, gid: u32) -> (Option<&[u8]>, Option<&[u8]>) {
        let user = self.users.entry(uid).or_insert_with(|| user_name(uid));
        let group = self.groups.entry(gid).or_insert_with(|| group_name(gid));
        (user.as_deref(), group.as_deref())
    }
}
