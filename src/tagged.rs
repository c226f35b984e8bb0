//! One list of variants per family (policies, arrival processes, cost forms, jitter laws).
//!
//! A variant is a parameter struct in a file of its own and one line in its family's list. The
//! list makes the enum, its tag (`kind = "…"`), its JSON form and its schema.

/// Declares a family: `tagged! { /// doc \n pub enum Family { "tag" => Variant(Params), … } }`.
///
/// Reading uses serde's external tagging; the scenario reader presents a table with a `kind` key
/// in that shape, so every error keeps the place it came from (serde's own internal tagging
/// buffers the content and loses it). Writing and the schema show the internal `kind` tag.
macro_rules! tagged {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($tag:literal => $variant:ident($params:ty)),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(feature = "schema", derive(serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(tag = "kind"))]
        pub enum $name {
            $(
                #[doc = concat!("`kind = \"", $tag, "\"`.")]
                #[cfg_attr(feature = "schema", serde(rename = $tag))]
                $variant($params),
            )+
        }

        impl $name {
            /// Every `kind` of this family, in the order of the documentation.
            pub const KINDS: &'static [&'static str] = &[$($tag),+];

            /// The `kind` of this one.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $tag),+ }
            }
        }

        #[cfg(feature = "schema")]
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                #[derive(serde::Serialize)]
                #[serde(tag = "kind")]
                enum Written<'a> {
                    $(#[serde(rename = $tag)] $variant(&'a $params)),+
                }
                match self { $(Self::$variant(params) => Written::$variant(params)),+ }.serialize(s)
            }
        }
    };
}
pub(crate) use tagged;

/// A parameter that cannot be meant: which key, what is wrong, what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParam {
    /// The key inside its table.
    pub key: &'static str,
    /// One sentence.
    pub what: String,
    /// What to write instead.
    pub help: String,
}

impl BadParam {
    /// A complaint about `key`.
    pub fn new(key: &'static str, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { key, what: what.into(), help: help.into() }
    }
}

/// Derives what every parameter struct of a scenario needs (strict keys, JSON form, schema).
macro_rules! params {
    ($(#[$meta:meta])* pub struct $name:ident { $($body:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(
            feature = "schema",
            derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
            serde(deny_unknown_fields)
        )]
        pub struct $name { $($body)* }
    };
}
pub(crate) use params;
