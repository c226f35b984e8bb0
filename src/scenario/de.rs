//! A serde deserializer over the tree, whose errors know their place.
//!
//! A family of [`tagged!`](crate::tagged) is externally tagged for serde; a table with a `kind`
//! is presented as that variant holding the same table without `kind`. Keys that are read
//! elsewhere (such as `label` of a policy) are skipped, and still offered as suggestions.

use super::diag::Problem;
use super::fault::Fault;
use super::known::{self, Table};
use super::tree::{Entry, Node, Value};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};

/// A node on its way into a type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) node: &'a Node,
    /// The key it is the value of.
    pub(crate) key: Option<&'a str>,
    /// Its kind, once chosen.
    pub(crate) kind: Option<&'static str>,
    /// Keys of this table that are read elsewhere.
    pub(crate) skip: &'static [&'static str],
    /// Which table this is, for keys that are still to come.
    pub(crate) table: Table,
}

impl<'a> View<'a> {
    /// A node as it is.
    pub(crate) fn new(node: &'a Node) -> Self {
        Self { node, key: None, kind: None, skip: &[], table: Table::Other }
    }

    /// A node that is the value of `key`.
    pub(crate) fn of(key: &'a str, node: &'a Node) -> Self {
        Self { key: Some(key), ..Self::new(node) }
    }

    /// Without the keys that are read elsewhere.
    pub(crate) fn without(self, skip: &'static [&'static str]) -> Self {
        Self { skip, ..self }
    }

    /// As the table called so in the list of keys to come.
    pub(crate) fn as_table(self, table: Table) -> Self {
        Self { table, ..self }
    }

    /// Reads it.
    ///
    /// # Errors
    /// The first place that does not fit `T`.
    pub(crate) fn read<T: serde::Deserialize<'a>>(self) -> Result<T, Box<Problem>> {
        T::deserialize(self).map_err(|e| e.settle(&self).into_problem())
    }

    fn skips(&self, key: &str) -> bool {
        (self.kind.is_some() && key == "kind") || self.skip.contains(&key)
    }

    fn map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Some(entries) = self.node.entries() else {
            return Err(self.wrong_type(&visitor));
        };
        let access = Keys { view: self, rest: entries.iter(), current: None };
        visitor.visit_map(access).map_err(|e| e.settle(&self))
    }

    fn wrong_type(&self, expected: &dyn serde::de::Expected) -> Fault {
        let found = match &self.node.value {
            Value::Null => Unexpected::Unit,
            Value::Bool(b) => Unexpected::Bool(*b),
            Value::Int(n) => match (i64::try_from(*n), u64::try_from(*n)) {
                (Ok(n), _) => Unexpected::Signed(n),
                (_, Ok(n)) => Unexpected::Unsigned(n),
                _ => Unexpected::Other("a number out of range"),
            },
            Value::Float(x) => Unexpected::Float(*x),
            Value::Text(text) => Unexpected::Str(text),
            Value::List(_) => Unexpected::Seq,
            Value::Table(_) => Unexpected::Map,
        };
        Fault::invalid_type(found, expected).settle(self)
    }
}

impl<'de> Deserializer<'de> for View<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(b) => visitor.visit_bool(*b),
            Value::Int(n) => match (u64::try_from(*n), i64::try_from(*n)) {
                (Ok(n), _) => visitor.visit_u64(n),
                (_, Ok(n)) => visitor.visit_i64(n),
                _ => return Err(self.wrong_type(&visitor)),
            },
            Value::Float(x) => visitor.visit_f64(*x),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(items) => {
                let mut access = Items { view: self, rest: items.iter() };
                let read = visitor.visit_seq(&mut access);
                if read.is_ok() && access.rest.len() > 0 {
                    let taken = items.len() - access.rest.len();
                    return Err(Fault::too_many(items.len(), taken).settle(&self));
                }
                read
            }
            Value::Table(_) => return self.map(visitor),
        };
        read.map_err(|e| e.settle(&self))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.map(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let (written, span) = match &self.node.value {
            Value::Text(text) => (text.as_str(), self.node.span),
            Value::Table(_) => match self.node.get("kind") {
                Some(Node { value: Value::Text(kind), span }) => (kind.as_str(), *span),
                Some(other) => {
                    let kind = View::of("kind", other);
                    return Err(kind.wrong_type(&Choice(variants)));
                }
                None if name == "Cost" && self.node.get("file").is_some() => {
                    ("file", self.node.span)
                }
                None => return Err(Fault::missing_kind(name, variants).settle(&self)),
            },
            _ => return Err(self.wrong_type(&Choice(variants))),
        };
        let Some(kind) = variants.iter().find(|v| **v == written) else {
            return Err(Fault::unknown_kind(name, written, variants, span, self.key));
        };
        let view = Self { kind: Some(kind), ..self };
        visitor.visit_enum(Variant { view, kind }).map_err(|e| e.settle(&view))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct identifier ignored_any
    }
}

/// What a choice expects.
struct Choice(&'static [&'static str]);

impl serde::de::Expected for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&known::listed(self.0, "or"))
    }
}

/// The keys of a table, in order.
struct Keys<'a> {
    view: View<'a>,
    rest: std::slice::Iter<'a, Entry>,
    current: Option<&'a Entry>,
}

impl<'de> MapAccess<'de> for Keys<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some(entry) = self.rest.find(|e| !self.view.skips(&e.key)) else {
            return Ok(None);
        };
        self.current = Some(entry);
        let key = seed.deserialize(entry.key.as_str().into_deserializer());
        key.map(Some).map_err(|e: Fault| e.at_key(&self.view, entry))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some(entry) = self.current.take() else {
            return Err(Fault::custom("a value without a key"));
        };
        let view = View::of(&entry.key, &entry.node);
        seed.deserialize(view).map_err(|e| e.settle(&view))
    }
}

/// The items of a list, in order.
struct Items<'a> {
    view: View<'a>,
    rest: std::slice::Iter<'a, Node>,
}

impl<'de> SeqAccess<'de> for &mut Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(node) = self.rest.next() else {
            return Ok(None);
        };
        let view = View { key: self.view.key, ..View::new(node) };
        seed.deserialize(view).map(Some).map_err(|e| e.settle(&view))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A kind and the table of its parameters.
struct Variant<'a> {
    view: View<'a>,
    kind: &'static str,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let kind = seed.deserialize(self.kind.into_deserializer())?;
        Ok((kind, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        if let Value::Text(_) = self.view.node.value {
            // `jitter = "none"`: a kind all of whose parameters can be left out.
            let none = serde::de::value::MapDeserializer::new(std::iter::empty::<(&str, &str)>());
            return seed.deserialize(none).map_err(|e: Fault| e.settle(&self.view));
        }
        seed.deserialize(self.view)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Fault> {
        self.view.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.view.map(visitor)
    }
}
