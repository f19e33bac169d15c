//! Cached names of users and groups, each looked up once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use millstream_system::accounts;

use millstream_text::quote::Quoter;
use millstream_text::size::write_integer;

/// How a user or group is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its name, or its number.
    pub text: Vec<u8>,
    /// Columns of the text.
    pub width: usize,
    /// Whether it is its name.
    pub named: bool,
}

impl Owner {
    fn new(id: u32, name: Option<Vec<u8>>, quoter: &Quoter) -> Self {
        let named = name.is_some();
        let text = name.unwrap_or_else(|| {
            let mut number = Vec::new();
            write_integer(u64::from(id), &mut number);
            number
        });
        Owner { width: quoter.width(&text), text, named }
    }
}

/// Users or groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Account {
    /// A user.
    User(u32),
    /// A group.
    Group(u32),
}

impl Account {
    fn id(self) -> u32 {
        match self {
            Account::User(id) | Account::Group(id) => id,
        }
    }

    fn name(self) -> Option<Vec<u8>> {
        match self {
            Account::User(id) => accounts::user_name(id),
            Account::Group(id) => accounts::group_name(id),
        }
    }
}

type Known = HashMap<Account, Arc<Owner>>;

/// Whether accounts are shown by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStyle {
    /// By name, by number if they have none.
    Names,
    /// By number.
    Numbers,
}

/// The cache shared by all workers.
#[derive(Debug)]
pub struct SharedOwners {
    style: AccountStyle,
    quoter: Quoter,
    known: Mutex<Known>,
}

impl SharedOwners {
    /// An empty cache; the quoter measures names.
    pub fn new(style: AccountStyle, quoter: Quoter) -> Self {
        SharedOwners { style, quoter, known: Mutex::default() }
    }

    fn get(&self, account: Account) -> Arc<Owner> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(owner) = known().get(&account) {
            return Arc::clone(owner);
        }
        // The lock is not held during the lookup, because the name service may be a server.
        let name = if self.style == AccountStyle::Names { account.name() } else { None };
        let owner = Arc::new(Owner::new(account.id(), name, &self.quoter));
        Arc::clone(known().entry(account).or_insert(owner))
    }
}

/// The cache of one worker.
#[derive(Debug, Default)]
pub struct Owners {
    known: Known,
}

impl Owners {
    /// How `account` is shown.
    pub fn get(&mut self, account: Account, shared: &SharedOwners) -> &Owner {
        self.known.entry(account).or_insert_with(|| shared.get(account))
    }
}

#[cfg(test)]
mod tests {
    use millstream_system::locale::Locale;

    use super::*;
    use millstream_text::quote::{ControlCharacters, QuotingStyle};

    #[test]
    fn names_and_numbers() {
        let quoter = Quoter {
            style: QuotingStyle::Literal,
            control: ControlCharacters::Show,
            locale: Locale::from_environment(),
        };
        for (style, account, text, named) in [
            (AccountStyle::Names, Account::User(0), "root", true),
            (AccountStyle::Names, Account::Group(0), "root", true),
            (AccountStyle::Numbers, Account::User(0), "0", false),
            (AccountStyle::Names, Account::User(4_294_967_280), "4294967280", false),
        ] {
            let shared = SharedOwners::new(style, quoter);
            let mut owners = Owners::default();
            let owner = owners.get(account, &shared);
            assert_eq!(
                (owner.text.as_slice(), owner.width, owner.named),
                (text.as_bytes(), text.len(), named)
            );
        }
    }
}
