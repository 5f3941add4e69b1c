//! Tables without lines.

use comfy_table::{CellAlignment, Table, presets};

use super::terminal::on_one_line;

/// Rows below a header, as text; the columns in `numbers` are aligned to the right.
pub(super) fn columns<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    numbers: &[usize],
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.to_vec());
    for row in rows {
        table.add_row(row.map(|cell| on_one_line(&cell).into_owned()).to_vec());
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for number in numbers {
        if let Some(column) = table.column_mut(*number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}
