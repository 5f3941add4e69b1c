//! A small blocking OVSDB client (RFC 7047), enough to fill a database and to look at rows.
//!
//! It is apart from the agent's own client on purpose: what the agent wrote is checked with other
//! code than the code that wrote it.

use std::cell::{Cell, RefCell};
use std::io::{BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::de::IoRead;
use serde_json::{StreamDeserializer, Value, json};

use super::error::{LabError, Result};

/// The longest time that the server may take for one answer.
const ANSWER: Duration = Duration::from_secs(120);

type Messages = StreamDeserializer<'static, IoRead<BufReader<UnixStream>>, Value>;

/// A connection to one database.
pub struct Database {
    name: &'static str,
    stream: UnixStream,
    messages: RefCell<Messages>,
    next_id: Cell<u64>,
}

impl Database {
    /// Connects to the server's socket; `name` is the schema's (`OVN_Southbound`, …).
    pub(crate) fn connect(socket: &Path, name: &'static str) -> Result<Self> {
        let shown = &socket.display();
        let stream = UnixStream::connect(socket).map_err(LabError::io("connect to", shown))?;
        stream
            .set_read_timeout(Some(ANSWER))
            .map_err(LabError::io("set up", shown))?;
        let reader = stream.try_clone().map_err(LabError::io("set up", shown))?;
        let messages = StreamDeserializer::new(IoRead::new(BufReader::new(reader)));
        Ok(Self {
            name,
            stream,
            messages: RefCell::new(messages),
            next_id: Cell::new(1),
        })
    }

    /// Runs operations in one transaction; returns each one's result.
    ///
    /// # Errors
    /// When the server refuses any of them: then none was done.
    pub fn transact(&self, operations: Vec<Value>) -> Result<Vec<Value>> {
        let mut parameters = vec![json!(self.name)];
        parameters.extend(operations);
        let id = self.next_id.replace(self.next_id.get() + 1);
        self.write(&json!({"method": "transact", "params": parameters, "id": id}))?;
        let answer = loop {
            let message = self.read()?;
            if message["method"] == "echo" {
                self.write(
                    &json!({"id": message["id"], "result": message["params"], "error": null}),
                )?;
            } else if message["id"] == id {
                break message;
            }
        };
        let refused = |error: &Value| LabError::Transaction {
            database: self.name,
            error: error.clone(),
        };
        if !answer["error"].is_null() {
            return Err(refused(&answer["error"]));
        }
        let Value::Array(results) = &answer["result"] else {
            return Err(refused(&answer));
        };
        // A constraint that fails at commit is an extra last element (RFC 7047, 4.1.3).
        match results.iter().find(|result| result.get("error").is_some()) {
            Some(error) => Err(refused(error)),
            None => Ok(results.clone()),
        }
    }

    /// The rows of a table that meet all conditions (`[["column", "==", value], …]`).
    ///
    /// # Errors
    /// When the server refuses the operation.
    pub fn select(&self, table: &str, conditions: Value, columns: &[&str]) -> Result<Vec<Value>> {
        let operation =
            json!({"op": "select", "table": table, "where": conditions, "columns": columns});
        let results = self.transact(vec![operation])?;
        match results.first().map(|result| &result["rows"]) {
            Some(Value::Array(rows)) => Ok(rows.clone()),
            other => Err(LabError::Unexpected {
                what: "the rows of a select",
                text: format!("{other:?}"),
            }),
        }
    }

    fn write(&self, message: &Value) -> Result<()> {
        (&self.stream)
            .write_all(message.to_string().as_bytes())
            .map_err(LabError::io("write to", self.name))
    }

    fn read(&self) -> Result<Value> {
        match self.messages.borrow_mut().next() {
            Some(Ok(message)) => Ok(message),
            Some(Err(error)) => Err(LabError::io("read from", self.name)(error.into())),
            None => Err(LabError::io("read from", self.name)(
                std::io::ErrorKind::UnexpectedEof.into(),
            )),
        }
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Database")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// An OVSDB map of strings.
pub(crate) fn map<const N: usize>(pairs: [(&str, String); N]) -> Value {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| json!([key, value]))
        .collect();
    json!(["map", pairs])
}

/// An OVSDB set.
pub(crate) fn set(values: &[Value]) -> Value {
    json!(["set", values])
}

/// A reference to a row that the same transaction inserts.
pub(crate) fn named(uuid_name: &str) -> Value {
    json!(["named-uuid", uuid_name])
}
