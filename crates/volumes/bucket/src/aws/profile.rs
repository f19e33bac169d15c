//! The profiles in `~/.aws/credentials` and `~/.aws/config`.
//!
//! <https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html>. Lines that are indented belong to the setting
//! above them, and are not read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{AccessError, variable};

/// The settings of a profile; those of the file of credentials come first.
#[derive(Debug, Default)]
pub(super) struct Profile {
    settings: HashMap<String, String>,
}

impl Profile {
    /// The profile that the environment names.
    pub(super) fn from_environment() -> Result<Self, AccessError> {
        let named = variable("AWS_PROFILE");
        let name = named.as_deref().unwrap_or("default");
        let home = variable("HOME").map(PathBuf::from);
        let place = |name: &str, file: &str| {
            variable(name)
                .map(PathBuf::from)
                .or_else(|| home.as_ref().map(|home| home.join(".aws").join(file)))
        };
        let mut settings = HashMap::new();
        let mut is_there = false;
        let config_section = if name == "default" { "default".to_owned() } else { format!("profile {name}") };
        for (path, section_name) in [
            (place("AWS_CONFIG_FILE", "config"), &*config_section),
            (place("AWS_SHARED_CREDENTIALS_FILE", "credentials"), name),
        ] {
            let text = path.as_deref().map_or(Ok(None), read)?;
            if let Some(found) = text.and_then(|text| section(&text, section_name)) {
                is_there = true;
                settings.extend(found);
            }
        }
        match named {
            Some(name) if !is_there => Err(AccessError::NoProfile(name)),
            _ => Ok(Profile { settings }),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.settings.get(name).filter(|value| !value.is_empty()).cloned()
    }
}

/// The contents of a file, if it is there.
fn read(path: &Path) -> Result<Option<String>, AccessError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(AccessError::File(path.to_owned(), error.to_string())),
    }
}

/// The settings of a section, names in lower case; none if there is no such section.
pub(super) fn section(text: &str, name: &str) -> Option<HashMap<String, String>> {
    let mut found: Option<HashMap<String, String>> = None;
    let mut is_inside = false;
    for line in text.lines() {
        if line.starts_with([' ', '\t']) || line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let words = header.split(']').next().unwrap_or_default().split_whitespace();
            is_inside = words.eq(name.split_whitespace());
            if is_inside {
                found.get_or_insert_default();
            }
        } else if let (true, Some((key, value))) = (is_inside, line.split_once('=')) {
            let value = value.split(" #").next().unwrap_or_default().split(" ;").next().unwrap_or_default();
            let settings = found.get_or_insert_default();
            settings.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# mine\n[default]\naws_access_key_id = A # comment\nregion=eu-west-1\n\n[profile  other]\nRegion = x\n\
                        s3 =\n  max_concurrent_requests = 20\n  region = no\nendpoint_url = http://h:1 ; c\n[empty]\n";

    #[test]
    fn a_section_has_its_settings() {
        let get = |name: &str, key: &str| section(TEXT, name).and_then(|found| found.get(key).cloned());
        assert_eq!(get("default", "aws_access_key_id").as_deref(), Some("A"));
        assert_eq!(get("default", "region").as_deref(), Some("eu-west-1"));
        assert_eq!(get("profile other", "region").as_deref(), Some("x"));
        assert_eq!(get("profile other", "endpoint_url").as_deref(), Some("http://h:1"));
        assert_eq!(section(TEXT, "empty"), Some(HashMap::new()));
        assert_eq!(section(TEXT, "other"), None);
    }
}
