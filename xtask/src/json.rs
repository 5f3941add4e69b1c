//! Looking into what cargo prints: what is absent reads as null.

use serde_json::Value;

/// The member of an object.
pub(crate) fn member<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// The elements of an array.
pub(crate) fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    member(value, name).as_array().into_iter().flatten()
}

/// A member that is a text.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    member(value, name).as_str().unwrap_or_default()
}

/// The elements of an array that are texts.
pub(crate) fn texts(value: &Value, name: &str) -> Vec<String> {
    items(value, name)
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
