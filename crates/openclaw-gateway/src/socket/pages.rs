//! The pages of the Control UI, from a folder of static files (`gateway.controlUi.root`).
//!
//! They need no token: the folder is public, and the page hands its token over in `connect`.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, http};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::CallerService;

/// Maximum size of a file, in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Maximum length of a path in a request, in bytes.
const MAX_PATH: usize = 1_024;
const INDEX: &str = "index.html";
/// Below this, programs look for documents, which no page replaces.
const WELL_KNOWN: &str = ".well-known";
/// Shown in a browser if no folder of pages is configured.
const NO_PAGES: &str =
    "This is an OpenClaw gateway. It has no page here: `gateway.controlUi.root` is not set.\n";
/// What the pages ask for before they connect.
const SETTINGS: &str = "control-ui-config.json";

/// Serves a file, or the index page for the address of a page inside the application.
pub(super) async fn serve(
    State(service): State<Arc<dyn CallerService>>,
    method: Method,
    target: Uri,
    headers: HeaderMap,
) -> Response {
    let Some(root) = service.control_ui() else {
        return (StatusCode::NOT_FOUND, NO_PAGES).into_response();
    };
    if method != Method::GET && method != Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let path = target.path().trim_start_matches('/').to_owned();
    if path.rsplit('/').next() == Some(SETTINGS) {
        let settings =
            json!({ "basePath": "", "terminalEnabled": false, "cliAgentsEnabled": false });
        return Json(settings).into_response();
    }
    let accepts = headers.get(header::ACCEPT).and_then(|it| it.to_str().ok());
    let may_be_page = may_be_page(&path, accepts);
    // Files are read where blocking is allowed.
    let read = tokio::task::spawn_blocking(move || {
        let found = if path.is_empty() { None } else { read(&root, &path) };
        found.or_else(|| may_be_page.then(|| read(&root, INDEX))?)
    });
    match read.await.ok().flatten() {
        Some(file) => file.response(method == Method::HEAD),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Whether a path without a file may be that of a page inside the application.
fn may_be_page(path: &str, accepts: Option<&str>) -> bool {
    // Programs look for documents there.
    let is_document = path.split('/').next() == Some(WELL_KNOWN);
    let has_extension = Path::new(path).extension().is_some();
    let takes_pages = accepts.is_none_or(|it| it.contains("text/html") || it.contains("*/*"));
    takes_pages && !has_extension && !is_document
}

/// A file that was read.
struct Page {
    bytes: Vec<u8>,
    kind: &'static str,
    /// Whether its name changes with its content.
    is_permanent: bool,
}

impl Page {
    fn response(self, is_head: bool) -> Response {
        let Self { bytes, kind, is_permanent } = self;
        let policy = if kind.starts_with("text/html") { policy(&bytes) } else { policy(&[]) };
        let cache = if is_permanent { "public, max-age=31536000, immutable" } else { "no-cache" };
        let length = bytes.len();
        let body = if is_head { Body::empty() } else { Body::from(bytes) };
        http::Response::builder()
            .header(header::CONTENT_TYPE, HeaderValue::from_static(kind))
            .header(header::CACHE_CONTROL, HeaderValue::from_static(cache))
            .header(header::CONTENT_SECURITY_POLICY, policy)
            .header(header::CONTENT_LENGTH, length)
            // Connections without a token are closed after some seconds: no request must be sent on
            // one just then.
            .header(header::CONNECTION, HeaderValue::from_static("close"))
            .body(body)
            .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
    }
}

/// Reads a file of the folder. `None` if there is none, if it is outside of the folder, also by a
/// link, or if it is too large.
fn read(root: &Path, path: &str) -> Option<Page> {
    let root = openclaw_files::canonical(root).ok()?;
    let file = openclaw_files::canonical(root.join(relative(path)?)).ok()?;
    if !file.starts_with(&root) {
        return None;
    }
    let kind = kind(&file)?;
    let is_permanent = file.starts_with(root.join("assets"));
    let mut bytes = openclaw_files::read(&file, MAX_FILE).ok()?;
    if path == INDEX {
        // It is served for every page of the application, also for `/chat/main`.
        bytes = String::from_utf8(bytes).ok()?.replace("=\"./", "=\"/").into_bytes();
    }
    Some(Page { bytes, kind, is_permanent })
}

/// The path of a file below the folder, from the path of a request.
fn relative(path: &str) -> Option<PathBuf> {
    if path.len() > MAX_PATH {
        return None;
    }
    // Names in the folder have no characters that need an escape.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~@+/".contains(c);
    let path = Path::new(path.chars().all(is_plain).then_some(path)?);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    is_inside.then(|| path.to_owned())
}

/// The media type of a file; `None` for files that are not part of a page.
fn kind(file: &Path) -> Option<&'static str> {
    Some(match file.extension()?.to_str()? {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => return None,
    })
}

/// The content security policy: everything from this gateway only, and no scripts in the page but
/// those that the file has.
fn policy(html: &[u8]) -> String {
    let scripts: Vec<String> = inline_scripts(&String::from_utf8_lossy(html))
        .map(|script| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(script.as_bytes()))))
        .collect();
    format!(
        "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; \
         form-action 'none'; script-src 'self' 'wasm-unsafe-eval'{}; \
         style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
         media-src 'self' data: blob:; font-src 'self' data:; worker-src 'self'; \
         connect-src 'self' data:",
        scripts.concat()
    )
}

/// The texts of scripts that are part of a page.
fn inline_scripts(html: &str) -> impl Iterator<Item = String> {
    let scripts = html.split("<script").skip(1).filter_map(|rest| {
        let (attributes, rest) = rest.split_once('>')?;
        let (script, _) = rest.split_once("</script>")?;
        (!attributes.contains(" src=")).then(|| script.to_owned())
    });
    scripts.collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::{may_be_page, policy, read, relative};

    #[test]
    fn only_addresses_inside_the_application_are_answered_with_its_page() {
        for accepts in [None, Some("*/*"), Some("text/html,application/xml")] {
            for path in ["", "chat", "chat/main", "wellknown/x", "chat/.well-known"] {
                assert!(may_be_page(path, accepts), "{path}");
            }
            for path in [
                ".well-known",
                ".well-known/oauth-protected-resource",
                ".well-known/oauth-authorization-server/mcp",
                "assets/gone.js",
            ] {
                assert!(!may_be_page(path, accepts), "{path}");
            }
        }
        assert!(!may_be_page("chat", Some("application/json")));
    }

    #[test]
    fn no_path_leaves_the_folder() {
        for path in ["index.html", "assets/a-B_1.js", "a/b/c.css"] {
            assert!(relative(path).is_some(), "{path}");
        }
        for path in [
            "../secret.json",
            "a/../../secret.json",
            "/etc/passwd",
            "a//../..",
            "%2e%2e/secret.json",
            "a\\..\\b",
            "a\0.js",
            "./../x.js",
            "..",
        ] {
            assert!(relative(path).is_none(), "{path}");
        }
        assert!(relative(&"a".repeat(2_000)).is_none());
    }

    #[test]
    fn links_out_of_the_folder_and_other_kinds_of_files_are_not_served() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("ui");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("index.html"), "<p>").unwrap();
        std::fs::write(root.join("key.pem"), "secret").unwrap();
        std::fs::write(folder.path().join("secret.json"), "{}").unwrap();
        assert!(read(&root, "index.html").is_some());
        assert!(read(&root, "key.pem").is_none() && read(&root, "none.js").is_none());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(folder.path().join("secret.json"), root.join("s.json"))
                .unwrap();
            std::os::unix::fs::symlink(folder.path(), root.join("up")).unwrap();
            std::os::unix::fs::symlink(root.join("index.html"), root.join("home.html")).unwrap();
            assert!(read(&root, "s.json").is_none() && read(&root, "up/secret.json").is_none());
            assert!(read(&root, "home.html").is_some(), "a link inside the folder");
        }
    }

    #[test]
    fn only_the_scripts_of_the_file_may_run() {
        let policy = policy(b"<script data-x>let a = 1;</script><script src=\"./a.js\"></script>");
        // printf 'let a = 1;' | openssl dgst -sha256 -binary | base64
        assert!(
            policy.contains("'sha256-xY6QKfH9PRsQnLz56nj6MBwiK5oHg+im1Jkpdp1x/Ck='"),
            "{policy}"
        );
        assert_eq!(policy.matches("sha256-").count(), 1);
        assert!(
            !policy.contains("'unsafe-inline'; script") && policy.contains("default-src 'self'")
        );
    }
}
