//! Schemas: what `get_schema` answers, read for what the agent monitors.

use neighsteer::ovsdb::wire::schema::layouts;

use super::rows::request;

pub(super) fn run(data: &[u8]) {
    match layouts(data, "fuzzed", &request()) {
        Ok(layouts) => {
            for layout in layouts {
                assert_eq!(layout.columns.len(), layout.types.len());
                for (kind, default) in layout.types.iter().zip(&layout.defaults) {
                    assert_eq!(kind.conform(default.clone()).as_ref(), Ok(default));
                }
            }
        }
        Err(error) => {
            let _ = error.to_string();
        }
    }
}
