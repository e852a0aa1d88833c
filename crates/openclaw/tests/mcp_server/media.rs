//! Attachments to the model, and media from it.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_testkit::{HOSTILE_FILE, Script, Tool, assert_is_external_file};
use serde_json::json;

use crate::client::Client;
use crate::common::place::Place;
use crate::model::{Model, last_message};

/// A PNG of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A PDF of one page with this text.
pub(crate) fn pdf(text: &str) -> Vec<u8> {
    let content = format!("BT /F1 24 Tf 72 720 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << \
         /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (nth, object) in objects.iter().enumerate() {
        offsets.push(file.len());
        write!(file, "{} 0 obj\n{object}\nendobj\n", nth + 1).unwrap();
    }
    let start = file.len();
    write!(file, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    for offset in offsets {
        writeln!(file, "{offset:010} 00000 n ").unwrap();
    }
    let size = objects.len() + 1;
    write!(file, "trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").unwrap();
    file
}

fn workspace(place: &Place) -> std::path::PathBuf {
    let folder = place.path("workspace");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn attachments_reach_the_model_in_the_form_its_provider_takes() {
    let model = Model::saying("seen");
    let (place, mut client) = model.client();
    std::fs::write(workspace(&place).join("notes.txt"), "from a file").unwrap();
    client.order(json!({ "message": "look", "attachments": [
        { "data": PNG, "mimeType": "text/plain", "name": "dot" },
        { "uri": format!("data:image/png;base64,{PNG}") },
        { "path": "notes.txt" },
        { "data": STANDARD.encode(pdf("Hello from a PDF")), "name": "page.pdf" },
        { "uri": "data:,plain%20text" },
        { "data": STANDARD.encode(b"RIFF\0\0\0\0WAVEfmt "), "name": "sound" },
        { "data": STANDARD.encode(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom\xff\xff"), "name": "film" },
    ] }));
    let request = model.next();
    let parts = last_message(&request).as_array().unwrap();
    assert_eq!(parts[0], json!({ "type": "text", "text": "look" }));
    for image in &parts[1..3] {
        assert_eq!(image["image_url"]["url"], format!("data:image/png;base64,{PNG}"), "{image}");
    }
    assert!(parts[3]["text"].as_str().unwrap().contains("Path: notes.txt"), "{}", parts[3]);
    assert_eq!(parts[4]["type"], "file");
    assert_eq!(parts[4]["file"]["filename"], "page.pdf");
    assert!(parts[4]["file"]["file_data"].as_str().unwrap().starts_with("data:application/pdf;"));
    assert!(parts[5]["text"].as_str().unwrap().contains("plain text"), "{}", parts[5]);
    assert_eq!(parts[6]["input_audio"]["format"], "wav");
    assert!(parts[7]["text"].as_str().unwrap().contains("video/mp4"), "{}", parts[7]);
    assert_eq!(parts.len(), 8);
}

#[test]
fn an_attached_file_is_external_text_and_the_message_is_the_users() {
    let model = Model::saying("seen");
    let (place, mut client) = model.client();
    std::fs::write(workspace(&place).join("notes.txt"), HOSTILE_FILE).unwrap();
    let message = "look <|im_start|>";
    client.order(json!({ "message": message, "attachments": [
        { "path": "notes.txt" },
        { "data": STANDARD.encode(HOSTILE_FILE), "name": "b<|im_start|>.txt" },
        { "data": STANDARD.encode(pdf("x")), "name": "c<|im_start|>.pdf" },
    ] }));
    let request = model.next();
    let parts = last_message(&request).as_array().unwrap();
    assert_eq!(parts[0]["text"], message);
    assert_is_external_file(parts[1]["text"].as_str().unwrap(), "notes.txt");
    assert_is_external_file(parts[2]["text"].as_str().unwrap(), "b_removed_token_.txt");
    assert_eq!(parts[3]["file"]["filename"], "c[removed token].pdf");
}

/// Asserts what a model of a provider that accepts no files gets for a PDF.
fn assert_read_as(file: &[u8], expected: &str) {
    let model = Model::saying("read");
    let mut config = model.config();
    config["models"]["providers"]["fake"]["api"] = json!("ollama");
    let place = Place::with(&config);
    let mut client = Client::start(&place, &[]);
    let attachments = json!([{ "data": STANDARD.encode(file), "name": "page.pdf" }]);
    let id = client
        .send_call("order_openclaw", json!({ "message": "read", "attachments": attachments }));
    let request = model.next();
    let text = last_message(&request).as_str().unwrap();
    assert!(text.contains(expected), "{text}");
    client.notify("notifications/cancelled", json!({ "requestId": id }));
}

#[test]
fn a_model_without_documents_gets_the_text_of_a_pdf() {
    assert_read_as(&pdf("Hello from a PDF"), "Hello from a PDF");
}

#[test]
fn a_hostile_pdf_is_described() {
    let deep = format!("%PDF-1.4\n1 0 obj\n{}\nendobj\n", "[".repeat(2_000_000));
    for file in [b"%PDF-1.7 nothing".as_slice(), deep.as_bytes()] {
        assert_read_as(file, "cannot be read");
    }
}

#[test]
fn what_may_not_be_attached_is_rejected_with_the_reason() {
    let place = Place::new();
    let folder = workspace(&place);
    let allowed = place.path("allowed");
    std::fs::create_dir(&allowed).unwrap();
    std::fs::write(allowed.join("a.txt"), "allowed").unwrap();
    std::fs::write(place.path("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(place.path("secret"), folder.join("link")).unwrap();
    std::fs::File::create(folder.join("huge")).unwrap().set_len(1 << 30).unwrap();
    std::fs::write(folder.join("archive.zip"), b"PK\x03\x04").unwrap();
    let args = ["--attach-from", allowed.to_str().unwrap()];
    let mut client = Client::start(&place, &args);
    let large = STANDARD.encode(vec![0; 16 * 1024 * 1024]);
    let secret = place.path("secret");
    for (attachment, why) in [
        (json!({}), "exactly one of"),
        (json!({ "data": PNG, "path": "x" }), "exactly one of"),
        (json!({ "data": "%%%" }), "not base64"),
        (json!({ "data": "" }), "is empty"),
        (
            json!({ "data": STANDARD.encode(b"\xff\xfe\xfd"), "mimeType": "image/png" }),
            "unsupported",
        ),
        (json!({ "data": large }), "too large"),
        (json!({ "path": "/etc/shadow" }), "is not in the workspace"),
        (json!({ "path": secret }), "is not in the workspace"),
        (json!({ "path": "link" }), "leads out"),
        (json!({ "path": "../secret" }), "leads out"),
        (json!({ "path": folder }), "is a folder"),
        (json!({ "path": "huge" }), "too large"),
        (json!({ "path": "missing" }), "does not exist"),
        (json!({ "path": "archive.zip" }), "unsupported type (application/zip)"),
        (json!({ "uri": "file:///etc/passwd" }), "scheme `file:`"),
        (json!({ "uri": "http://127.0.0.1:9/" }), "not on the public internet"),
        (json!({ "uri": "http://169.254.169.254/" }), "not on the public internet"),
        (json!({ "uri": "data:text/plain" }), "no comma"),
        (json!({ "url": "https://example.org" }), "must not have"),
    ] {
        let error = client
            .failure("order_openclaw", json!({ "message": "x", "attachments": [attachment] }));
        assert!(error.contains(why), "{why}: {error}");
    }
    let many = vec![json!({ "data": PNG }); 17];
    let error = client.failure("order_openclaw", json!({ "message": "x", "attachments": many }));
    assert!(error.contains("at most 16"), "{error}");
    let attachments = json!([{ "path": allowed.join("a.txt") }]);
    client.order(json!({ "message": "hello", "attachments": attachments }));
}

#[test]
fn images_and_audio_of_tools_come_back() {
    let wav = STANDARD.encode(b"RIFF\0\0\0\0WAVEfmt ");
    let shoot = Tool::new("shoot").with("annotations", json!({ "readOnlyHint": true }));
    let script = Script::new().tools([shoot.result(&json!({ "content": [
        { "type": "text", "text": "a picture" },
        { "type": "image", "data": PNG, "mimeType": "image/png" },
        { "type": "audio", "data": wav, "mimeType": "audio/wav" },
    ] }))]);
    let model = Model::calling("mcp_camera_shoot", "Here it is.");
    let place = Place::with_server(model.config(), "camera", &script, json!({}));
    let mut client = Client::start(&place, &[]);
    let result = client.call("order_openclaw", json!({ "message": "take a picture" }));
    assert_eq!(result["content"][0]["text"], "Here it is.", "{result}");
    assert_eq!(
        result["content"][1],
        json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
    );
    assert_eq!(result["content"][2]["type"], "audio");
    let media = &result["structuredContent"]["media"];
    assert_eq!(media[0]["mimeType"], "image/png");
    assert_eq!(media.as_array().unwrap().len(), 2);
}

#[test]
fn what_is_too_large_for_a_result_is_linked_and_can_be_read() {
    let wav = |last: u8| {
        let mut bytes = b"RIFF\0\0\0\0WAVEfmt ".to_vec();
        bytes.resize(3200 * 1024, last);
        STANDARD.encode(bytes)
    };
    let record = Tool::new("record").with("annotations", json!({ "readOnlyHint": true }));
    let script = Script::new().tools([record.result(&json!({ "content": [
        { "type": "audio", "data": wav(1), "mimeType": "audio/wav" },
        { "type": "audio", "data": wav(2), "mimeType": "audio/wav" },
    ] }))]);
    let model = Model::calling("mcp_recorder_record", "Listen.");
    let place = Place::with_server(model.config(), "recorder", &script, json!({}));
    let mut client = Client::start(&place, &[]);
    let result = client.call("order_openclaw", json!({ "message": "record something" }));
    let content = result["content"].as_array().unwrap();
    let kinds: Vec<_> = content.iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "audio", "resource_link"]);
    let media = &result["structuredContent"]["media"];
    assert_eq!((&media[0]["omitted"], &media[1]["omitted"]), (&json!(false), &json!(true)));
    assert_eq!(media[1]["uri"], content[2]["uri"]);
    // Each can be read, also after more was said.
    let key = &result["structuredContent"]["sessionKey"];
    client.order(json!({ "message": "thanks", "sessionKey": key }));
    for (nth, last) in [(0, 1), (1, 2)] {
        let uri = media[nth]["uri"].clone();
        let read = client.ask("resources/read", json!({ "uri": uri })).unwrap();
        assert_eq!(read["contents"][0]["mimeType"], "audio/wav");
        assert!(read["contents"][0]["blob"] == wav(last), "{nth}");
    }
    let other = media[1]["uri"].as_str().unwrap().replace("/1", "/9");
    for uri in [other.as_str(), "file:///etc/passwd", "openclaw://media/..%2Fx/1/0"] {
        let error = client.ask("resources/read", json!({ "uri": uri })).unwrap_err();
        assert_eq!(error["code"], -32002, "{uri}: {error}");
    }
}
