//! Tables, drawn when they are complete.

use anstream::adapter::strip_str;
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};

use super::{Canvas, inline};

/// Whether these rows are a table: the second line separates the header.
pub(super) fn is_table(rows: &[String]) -> bool {
    rows.get(1).is_some_and(|row| {
        let cells = cells(row);
        let is_rule = |cell: &&str| {
            let rule = cell.trim_start_matches(':').trim_end_matches(':');
            !rule.is_empty() && rule.bytes().all(|c| c == b'-')
        };
        !cells.is_empty() && cells.iter().all(|cell| is_rule(&cell.as_str()))
    })
}

/// Splits a row into its cells. A bar after a backslash belongs to the cell.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = row.strip_suffix('|').filter(|row| !row.ends_with('\\')).unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut is_escaped = false;
    for c in row.chars() {
        match (c, cells.last_mut()) {
            ('|', _) if !is_escaped => cells.push(String::new()),
            ('|', Some(cell)) => {
                cell.pop();
                cell.push('|');
            }
            (c, Some(cell)) => cell.push(c),
            (_, None) => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Draws the table so that it fits the width.
pub(super) fn render(rows: &[String], canvas: Canvas) -> String {
    let text =
        |cell: &String| strip_str(&inline::render(cell, anstyle::Style::new(), canvas)).to_string();
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(canvas.width).unwrap_or(u16::MAX));
    if canvas.colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    let mut header: Vec<String> = rows.first().map(|row| cells(row)).unwrap_or_default();
    let count = header.len();
    header.resize(count, String::new());
    table
        .set_header(header.iter().map(|cell| Cell::new(text(cell)).add_attribute(Attribute::Bold)));
    for row in rows.iter().skip(2) {
        let mut cells = cells(row);
        cells.resize(count, String::new());
        table.add_row(cells.iter().map(text));
    }
    for (at, rule) in rows.get(1).map(|row| cells(row)).unwrap_or_default().iter().enumerate() {
        let alignment = match (rule.starts_with(':'), rule.ends_with(':')) {
            (true, true) => CellAlignment::Center,
            (false, true) => CellAlignment::Right,
            _ => continue,
        };
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(alignment);
        }
    }
    format!("{table}\n")
}
