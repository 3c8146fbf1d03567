//! Labels that the user gives to recordings: `host=web-1`. On the ground floor, because requests and formats name them.

use std::str::FromStr;

/// One label, as it was typed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// Letters, digits, `_` and `.`, not a digit first: what servers take as the name of a label.
    pub key: String,
    /// Any text but the empty one, which servers drop.
    pub value: String,
}

impl FromStr for Tag {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WANTED: &str = "takes KEY=VALUE, as in host=web-1";
        let (key, value) = text.split_once('=').ok_or(WANTED)?;
        let is_name = |word: &str| {
            word.chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
        };
        let begins = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if value.is_empty() || !begins || !is_name(key) {
            return Err(WANTED);
        }
        Ok(Self {
            key: key.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// Labels by their keys, each key once: their order on the command line has no effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags(Vec<Tag>);

impl Tags {
    /// The labels in the order of their keys.
    ///
    /// # Errors
    /// The key that is there twice.
    pub fn of(mut tags: Vec<Tag>) -> Result<Self, String> {
        tags.sort();
        match tags.windows(2).find(|pair| pair[0].key == pair[1].key) {
            Some(pair) => Err(pair[0].key.clone()),
            None => Ok(Self(tags)),
        }
    }

    /// All, by key.
    pub fn iter(&self) -> impl Iterator<Item = &Tag> {
        self.0.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|tag| tag.key == key);
        found.map(|tag| tag.value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_servers_take() {
        let tag: Tag = "host=web-1=a".parse().expect("a label");
        assert_eq!((&*tag.key, &*tag.value), ("host", "web-1=a"));
        for text in [
            "",
            "host",
            "=a",
            "host=",
            "1st=a",
            "my-host=a",
            "a b=c",
            "höst=a",
        ] {
            assert!(text.parse::<Tag>().is_err(), "{text}");
        }
        for text in ["_x=1", "service.name=a b", "h0=ü"] {
            assert!(text.parse::<Tag>().is_ok(), "{text}");
        }
    }

    #[test]
    fn their_order_has_no_effect() {
        let tags = |words: &[&str]| {
            let tags = words.iter().map(|word| word.parse().expect("a label"));
            Tags::of(tags.collect())
        };
        assert_eq!(tags(&["b=1", "a=2"]), tags(&["a=2", "b=1"]));
        assert_eq!(tags(&["b=1", "a=2", "b=1"]), Err("b".to_owned()));
        let both = tags(&["b=1", "a=2"]).expect("two keys");
        assert_eq!((both.get("b"), both.get("c")), (Some("1"), None));
    }
}
