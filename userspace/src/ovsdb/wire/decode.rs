//! Values out of JSON (RFC 7047, 5.1), without a tree in between.

use std::{fmt, str::FromStr};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, SeqAccess, Visitor},
};

use crate::ovsdb::{
    cache::Interner,
    value::{Atom, Datum, Uuid},
};

impl<'de> Deserialize<'de> for Uuid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Uuid;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a uuid")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Uuid, E> {
                Uuid::from_str(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Reads one value as it is written; [`super::schema::ColumnType::conform`] then fits it to its
/// column. Without a schema, a set of one may come out as a scalar.
pub(crate) struct DatumSeed<'a> {
    pub(crate) interner: &'a mut Interner,
}

/// What the first element of a two-element array says about the second.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Tag {
    Set,
    Map,
    Uuid,
}

impl<'de> DeserializeSeed<'de> for DatumSeed<'_> {
    type Value = Datum;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Datum, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DatumSeed<'_> {
    type Value = Datum;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of RFC 7047, 5.1")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Datum, E> {
        Ok(Datum::Scalar(Atom::Boolean(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Datum, E> {
        Ok(Datum::Scalar(Atom::Integer(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Datum, E> {
        i64::try_from(value)
            .map(|value| Datum::Scalar(Atom::Integer(value)))
            .map_err(|_| E::custom("an integer beyond 63 bits"))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Datum, E> {
        Ok(Datum::Scalar(Atom::Real(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Datum, E> {
        Ok(Datum::Scalar(Atom::String(self.interner.share(value))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Datum, A::Error> {
        let missing = || A::Error::custom("an array without its second element");
        let tag: Tag = seq.next_element()?.ok_or_else(missing)?;
        let interner = self.interner;
        let datum = match tag {
            Tag::Uuid => seq
                .next_element()?
                .map(|uuid| Datum::Scalar(Atom::Uuid(uuid))),
            Tag::Set => seq.next_element_seed(SetSeed { interner })?,
            Tag::Map => seq.next_element_seed(MapSeed { interner })?,
        };
        match seq.next_element::<serde::de::IgnoredAny>()? {
            None => datum.ok_or_else(missing),
            Some(_) => Err(A::Error::custom("an array with a third element")),
        }
    }
}

struct AtomSeed<'a> {
    interner: &'a mut Interner,
}

impl<'de> DeserializeSeed<'de> for AtomSeed<'_> {
    type Value = Atom;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Atom, D::Error> {
        match (DatumSeed {
            interner: self.interner,
        })
        .deserialize(deserializer)?
        {
            Datum::Scalar(atom) => Ok(atom),
            Datum::Set(_) | Datum::Map(_) => Err(D::Error::custom("a set or map within another")),
        }
    }
}

struct SetSeed<'a> {
    interner: &'a mut Interner,
}

impl<'de> DeserializeSeed<'de> for SetSeed<'_> {
    type Value = Datum;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Datum, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for SetSeed<'_> {
    type Value = Datum;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the values of a set")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Datum, A::Error> {
        let mut atoms = Vec::new();
        while let Some(atom) = seq.next_element_seed(AtomSeed {
            interner: &mut *self.interner,
        })? {
            atoms.push(atom);
        }
        Ok(Datum::set(atoms))
    }
}

struct MapSeed<'a> {
    interner: &'a mut Interner,
}

impl<'de> DeserializeSeed<'de> for MapSeed<'_> {
    type Value = Datum;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Datum, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for MapSeed<'_> {
    type Value = Datum;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the pairs of a map")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Datum, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = seq.next_element_seed(PairSeed {
            interner: &mut *self.interner,
        })? {
            pairs.push(pair);
        }
        Ok(Datum::map(pairs))
    }
}

struct PairSeed<'a> {
    interner: &'a mut Interner,
}

impl<'de> DeserializeSeed<'de> for PairSeed<'_> {
    type Value = (Atom, Atom);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for PairSeed<'_> {
    type Value = (Atom, Atom);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key and a value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut next = || {
            seq.next_element_seed(AtomSeed {
                interner: &mut *self.interner,
            })?
            .ok_or_else(|| A::Error::custom("a pair of a map without its two elements"))
        };
        Ok((next()?, next()?))
    }
}

#[cfg(test)]
mod tests;
