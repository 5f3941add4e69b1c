//! Values as JSON (RFC 7047, 5.1).

use serde::ser::{Serialize, SerializeSeq, Serializer};

use crate::ovsdb::value::{Atom, Datum};

impl Serialize for Atom {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Real(number) => serializer.serialize_f64(*number),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::String(text) => serializer.serialize_str(text),
            Self::Uuid(uuid) => ("uuid", uuid).serialize(serializer),
        }
    }
}

impl Serialize for Datum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = match self {
            Self::Scalar(atom) => return atom.serialize(serializer),
            Self::Set(_) | Self::Map(_) => serializer.serialize_seq(Some(2))?,
        };
        match self {
            Self::Scalar(_) => {}
            Self::Set(atoms) => {
                seq.serialize_element("set")?;
                seq.serialize_element(atoms)?;
            }
            Self::Map(pairs) => {
                seq.serialize_element("map")?;
                seq.serialize_element(pairs)?;
            }
        }
        seq.end()
    }
}
