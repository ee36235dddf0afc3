//! `/docs`: the OpenAPI document as one page for people. Rendered once, here: no script, no
//! other file, nothing from outside.

use std::fmt::Write;

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::app::App;

const STYLE: &str = include_str!("docs.css");

pub(super) fn routes(document: &Value) -> Router<App> {
    let page = Bytes::from(render(document));
    let digest = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    Router::new().route(
        "/docs",
        get(move || async move {
            let headers = [
                (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
                (CONTENT_SECURITY_POLICY, policy),
                (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
                (REFERRER_POLICY, "no-referrer".to_owned()),
                (CACHE_CONTROL, "no-cache".to_owned()),
            ];
            (headers, page)
        }),
    )
}

fn render(document: &Value) -> String {
    let mut out = String::with_capacity(256 * 1024);
    let text = |value: &Value| escape(value.as_str().unwrap_or(""));
    let _ = write!(
        out,
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title} API</title><style>{STYLE}</style>\
         <header><h1>{title} API <small>{version}</small></h1><p>{about}</p>\
         <p>The document itself: <a href=/openapi.json>/openapi.json</a></p></header><main>",
        title = text(&document["info"]["title"]),
        version = text(&document["info"]["version"]),
        about = text(&document["info"]["description"]),
    );
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            operation_into(&mut out, path, method, operation);
        }
    }
    out.push_str("</main><section><h2>Shapes</h2>");
    for (name, schema) in document["components"]["schemas"]
        .as_object()
        .into_iter()
        .flatten()
    {
        let _ = write!(
            out,
            "<details id=\"schema-{id}\"><summary><code>{id}</code></summary><pre>{body}</pre></details>",
            id = escape(name),
            body = linked(schema),
        );
    }
    out.push_str("</section></html>");
    out
}

fn operation_into(out: &mut String, path: &str, method: &str, operation: &Value) {
    let _ = write!(
        out,
        "<details><summary><b class={class}>{method}</b> <code>{path}</code> <span>{summary}</span></summary>",
        class = escape(method),
        method = escape(&method.to_uppercase()),
        path = escape(path),
        summary = escape(operation["summary"].as_str().unwrap_or("")),
    );
    for paragraph in operation["description"]
        .as_str()
        .unwrap_or("")
        .split("\n\n")
    {
        let _ = write!(out, "<p>{}</p>", escape(paragraph));
    }
    let parameters = operation["parameters"].as_array();
    if let Some(parameters) = parameters.filter(|p| !p.is_empty()) {
        out.push_str("<h3>Parameters</h3><table>");
        for parameter in parameters {
            let _ = write!(
                out,
                "<tr><td><code>{}</code><td>{}<td>{}",
                escape(parameter["name"].as_str().unwrap_or("")),
                escape(parameter["in"].as_str().unwrap_or("")),
                escape(parameter["description"].as_str().unwrap_or("")),
            );
        }
        out.push_str("</table>");
    }
    if let Some(body) = operation["requestBody"]["content"].as_object() {
        for (kind, content) in body {
            let _ = write!(
                out,
                "<h3>Body <small>{}</small></h3><pre>{}</pre>",
                escape(kind),
                linked(&content["schema"])
            );
        }
    }
    out.push_str("<h3>Answers</h3><table>");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let schema = response["content"]
            .as_object()
            .and_then(|content| content.values().next());
        let (said, shape) = match response["$ref"].as_str() {
            Some(_) => (
                "The one error shape.",
                linked(&serde_json::json!({ "$ref": "#/components/schemas/Problem" })),
            ),
            None => (
                response["description"].as_str().unwrap_or(""),
                schema.map_or_else(String::new, |content| linked(&content["schema"])),
            ),
        };
        let _ = write!(
            out,
            "<tr><td>{}<td>{}<td><pre>{shape}</pre>",
            escape(status),
            escape(said)
        );
    }
    out.push_str("</table></details>");
}

/// A schema as text, with links to the shapes it names.
fn linked(schema: &Value) -> String {
    let text = serde_json::to_string_pretty(schema).unwrap_or_default();
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text.as_str();
    while let Some(at) = rest.find("#/components/schemas/") {
        let (before, after) = rest.split_at(at);
        let name = &after["#/components/schemas/".len()..];
        let end = name.find('"').unwrap_or(name.len());
        let _ = write!(
            out,
            "{}<a href=\"#schema-{name}\">{name}</a>",
            escape(before),
            name = escape(&name[..end])
        );
        rest = &name[end..];
    }
    out.push_str(&escape(rest));
    out
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_nothing_of_the_outside_and_escapes_what_it_shows() {
        let page = render(&serde_json::json!({
            "info": { "title": "<script>alert(1)</script>" },
            "paths": { "/x": { "get": { "summary": "a \"b\" & c", "responses": {} } } },
        }));
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
        assert!(page.contains("a &quot;b&quot; &amp; c"));
        let whole = render(&crate::api::document());
        for outside in [
            "http://", "https://", "src=", "<script", "<link", "@import", "url(",
        ] {
            assert!(!whole.contains(outside), "{outside}");
        }
    }
}
