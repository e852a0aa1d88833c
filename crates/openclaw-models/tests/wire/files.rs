//! Documents and videos, in the format of each provider, or as text.

use openclaw_content::Text;
use openclaw_models::{ApiKind, Message, Part};
use serde_json::{Value, json};

use crate::body_of;

fn file(mime_type: &str, text: Option<&str>) -> Vec<Message> {
    let file = Part::File {
        mime_type: mime_type.into(),
        name: "a.file".into(),
        data: "JVBE".into(),
        text: text.map(Text::user),
    };
    vec![Message::User { parts: vec![Part::Text(Text::user("read")), file] }]
}

#[tokio::test]
async fn a_pdf_is_a_document_where_the_provider_takes_one() {
    let data = "data:application/pdf;base64,JVBE";
    for (kind, place, expected) in [
        (
            ApiKind::Anthropic,
            "/messages/0/content/1",
            json!({ "type": "document", "title": "a.file", "source": {
                "type": "base64", "media_type": "application/pdf", "data": "JVBE" },
                "cache_control": { "type": "ephemeral" } }),
        ),
        (
            ApiKind::OpenAi,
            "/messages/1/content/1",
            json!({ "type": "file", "file": { "filename": "a.file", "file_data": data } }),
        ),
        (
            ApiKind::OpenAiResponses,
            "/input/0/content/1",
            json!({ "type": "input_file", "filename": "a.file", "file_data": data }),
        ),
        (
            ApiKind::Gemini,
            "/contents/0/parts/1",
            json!({ "inline_data": { "mime_type": "application/pdf", "data": "JVBE" } }),
        ),
    ] {
        let (_, body) = body_of(kind, "some", file("application/pdf", Some("page"))).await;
        let found = body.pointer(place).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{kind:?}: {body}");
    }
}

#[tokio::test]
async fn elsewhere_its_text_is_sent_or_a_note() {
    let (_, body) = body_of(ApiKind::Ollama, "some", file("application/pdf", Some("page"))).await;
    let text = body["messages"][1]["content"].as_str().unwrap();
    assert!(text.contains("application/pdf") && text.ends_with("page"), "{text}");
    for kind in [ApiKind::Anthropic, ApiKind::OpenAi, ApiKind::OpenAiResponses, ApiKind::Ollama] {
        let (_, body) = body_of(kind, "some", file("video/mp4", None)).await;
        let body = body.to_string();
        assert!(body.contains("video/mp4") && !body.contains("JVBE"), "{kind:?}: {body}");
    }
    let (_, body) = body_of(ApiKind::Gemini, "some", file("video/mp4", None)).await;
    let video: &Value = &body["contents"][0]["parts"][1];
    assert_eq!(*video, json!({ "inline_data": { "mime_type": "video/mp4", "data": "JVBE" } }));
}
