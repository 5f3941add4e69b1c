use proptest::prelude::*;

use super::*;

fn parse(text: &'static str) -> Result<Incoming, MessageError> {
    Incoming::parse(&Bytes::from_static(text.as_bytes()))
}

#[test]
fn replies_requests_and_notifications_are_told_apart() {
    for (text, expected) in [
        (
            r#"{"id":7,"result":[1, 2],"error":null}"#,
            Incoming::Reply {
                id: 7,
                result: Ok(Bytes::from_static(b"[1, 2]")),
            },
        ),
        (
            r#"{"result":null,"id":7}"#,
            Incoming::Reply {
                id: 7,
                result: Ok(Bytes::from_static(b"null")),
            },
        ),
        (
            r#"{"id":["a", 1],"method":"echo","params":[{"x": 1}]}"#,
            Incoming::Request {
                id: Bytes::from_static(b"[\"a\", 1]"),
                method: "echo".to_owned(),
                params: Bytes::from_static(b"[{\"x\": 1}]"),
            },
        ),
        (
            r#"{"id":null,"method":"upd\u0061te3","params":["m"],"more":1}"#,
            Incoming::Notification {
                method: "update3".to_owned(),
                params: Bytes::from_static(b"[\"m\"]"),
            },
        ),
    ] {
        assert_eq!(parse(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn errors_of_every_shape_are_kept() {
    for (error, expected, details) in [
        (
            r#"{"error":"unknown database","details":"x"}"#,
            "unknown database",
            Some("x"),
        ),
        (
            r#"{"error":"unknown database","syntax":1}"#,
            "unknown database",
            None,
        ),
        (r#""canceled""#, "canceled", None),
        ("[1]", "[1]", None),
    ] {
        let text = format!(r#"{{"id":1,"result":null,"error":{error}}}"#);
        let Incoming::Reply { result, .. } = Incoming::parse(&Bytes::from(text)).unwrap() else {
            panic!("{error}");
        };
        let error = result.unwrap_err();
        assert_eq!(error.error, expected);
        assert_eq!(error.details.as_deref(), details);
    }
}

#[test]
fn what_is_no_message_is_refused() {
    for text in [
        "{}",
        "{",
        "[]",
        r#"{"id":"x","result":1}"#,
        r#"{"id":-1,"result":1}"#,
        r#"{"id":1,"id":2}"#,
        r#"{"method":5}"#,
        r#"{"id":1,"result":[}"#,
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_written_is_a_message() {
    let mut output = BytesMut::new();
    write_request(&mut output, 3, "transact", b"[\"D\"]");
    write_reply(&mut output, b"\"echo\"", b"[1]");
    write_refusal(&mut output, b"9");
    let messages: Vec<serde_json::Value> = serde_json::Deserializer::from_slice(&output)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(
        messages,
        [
            serde_json::json!({"id": 3, "method": "transact", "params": ["D"]}),
            serde_json::json!({"id": "echo", "result": [1], "error": null}),
            serde_json::json!({"id": 9, "result": null, "error": "unknown method"}),
        ]
    );
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>()) {
        let _ = Incoming::parse(&bytes.into());
    }

    #[test]
    fn arbitrary_parts_never_panic(part in r#"[\[\]{}:,"a-z0-9.\\]{0,40}"#) {
        for key in ["id", "method", "params", "result", "error"] {
            let _ = Incoming::parse(&format!(r#"{{"id":1,"{key}":{part}}}"#).into());
        }
    }
}
