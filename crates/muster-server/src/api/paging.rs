//! Cursors of lists: opaque to clients, the time and id of the last row.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_store::Page;
use muster_wire::Timestamp;

use super::problem::Problem;

/// The longest page.
pub(crate) const LIMIT_MAX: usize = 500;
/// The usual page.
pub(crate) const LIMIT: usize = 50;

/// Reads `limit` and `cursor`.
///
/// # Errors
/// 400 when the cursor is none of ours.
pub(crate) fn page(limit: Option<usize>, cursor: Option<&str>) -> Result<Page, Problem> {
    Ok(Page {
        after: cursor
            .filter(|cursor| !cursor.is_empty())
            .map(read)
            .transpose()?,
        limit: limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX),
    })
}

/// The cursor behind a row.
pub(crate) fn cursor(at: Timestamp, id: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}:{id}", at.0))
}

fn read(cursor: &str) -> Result<(Timestamp, String), Problem> {
    let wrong = || Problem::validation("cursor: not one that this plane gave; start without it");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    let (at, id) = text.split_once(':').ok_or_else(wrong)?;
    let at = at.parse().map_err(|_| wrong())?;
    Ok((Timestamp(at), id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_a_foreign_one_is_refused() {
        let text = cursor(Timestamp(5), "exec:1");
        let page = page(Some(9999), Some(&text)).unwrap();
        assert_eq!(page.after, Some((Timestamp(5), "exec:1".into())));
        assert_eq!(page.limit, LIMIT_MAX);
        for bad in ["!", "YQ", "eDph"] {
            assert!(super::page(None, Some(bad)).is_err(), "{bad}");
        }
    }
}
