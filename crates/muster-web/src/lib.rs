//! The dashboard's files, as `build.rs` made them: embedded, with their tags and packed forms.
//! Knows nothing of HTTP: who serves them decides on headers, nonces and who may have them.

use std::borrow::Cow;

use rust_embed::{EmbeddedFile, RustEmbed};

/// In the page: where an answer's nonce goes.
pub const NONCE: &str = "__MUSTER_NONCE__";

/// The files under the folder with a hash in their name never change.
const HASHED: &str = "assets/";

#[derive(RustEmbed)]
#[folder = "$OUT_DIR/ui"]
struct Files;

/// One file.
#[derive(Debug, Clone)]
pub struct Asset {
    /// Its bytes.
    pub bytes: Cow<'static, [u8]>,
    /// The same, packed with gzip, when that is smaller.
    pub gzip: Option<Cow<'static, [u8]>>,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// A tag of its bytes.
    pub etag: String,
    /// Whether its name changes with its content, so that it may be kept for ever.
    pub is_immutable: bool,
}

/// A file by its path below `/ui/`; packed forms and the page have no path of their own.
pub fn asset(path: &str) -> Option<Asset> {
    if path == "index.html" || path.ends_with(".gz") {
        return None;
    }
    let file = Files::get(path)?;
    Some(Asset {
        gzip: Files::get(&format!("{path}.gz")).map(|packed| packed.data),
        content_type: content_type(path),
        etag: etag(&file),
        is_immutable: path.starts_with(HASHED),
        bytes: file.data,
    })
}

/// The page, with [`NONCE`] where each answer has another word.
pub fn template() -> Cow<'static, str> {
    match Files::get("index.html").map(|file| file.data) {
        Some(Cow::Borrowed(bytes)) => String::from_utf8_lossy(bytes),
        Some(Cow::Owned(bytes)) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        None => Cow::Borrowed(""),
    }
}

/// A strong tag: half of the SHA-256 of the bytes.
fn etag(file: &EmbeddedFile) -> String {
    let hash = file.metadata.sha256_hash();
    let hex: String = hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("\"{hex}\"")
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, kind)| kind) {
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_there_whatever_the_build_found() {
        let page = template();
        assert!(
            page.contains("<!doctype html>") && page.contains("<title>"),
            "{page}"
        );
        assert!(
            asset("index.html").is_none(),
            "the page is no file: it has a nonce"
        );
        assert!(asset("nothing").is_none() && asset("../build.rs").is_none());
    }

    #[test]
    fn every_file_has_a_type_and_packed_forms_are_smaller_and_have_no_path() {
        for path in Files::iter() {
            if path == "index.html" {
                continue;
            }
            if let Some(plain) = path.strip_suffix(".gz") {
                assert!(asset(&path).is_none(), "{path}");
                let asset = asset(plain).unwrap_or_else(|| panic!("{path} belongs to nothing"));
                assert!(
                    asset
                        .gzip
                        .is_some_and(|packed| packed.len() < asset.bytes.len())
                );
                continue;
            }
            let asset = asset(&path).unwrap();
            assert_ne!(
                asset.content_type, "application/octet-stream",
                "{path} has no type"
            );
            assert_eq!(asset.etag.len(), 34, "{}", asset.etag);
        }
    }
}
