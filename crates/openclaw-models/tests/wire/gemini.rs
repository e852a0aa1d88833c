//! Google's `generateContent`.

use openclaw_models::{ApiKind, Message, ModelError, Part, StopReason, Thought, Usage};
use serde_json::{Value, json};

use crate::server::{Ending, Reply, Server, events};
use crate::{
    answer_to, asking, assert_interrupted, assert_words, body_of, calls, collect, conversation,
    model, tool,
};

const KIND: ApiKind = ApiKind::Gemini;
const NAME: &str = "gemini-3-pro-high";

fn chunk(parts: Value, reason: Option<&str>) -> (&'static str, Value) {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(reason) = reason {
        candidate["finishReason"] = reason.into();
    }
    let usage = json!({"promptTokenCount": 30, "candidatesTokenCount": 6, "thoughtsTokenCount": 2,
        "cachedContentTokenCount": 10, "totalTokenCount": 38});
    ("", json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": NAME}))
}

fn text(text: &str) -> (&'static str, Value) {
    chunk(json!([{ "text": text }]), None)
}

#[tokio::test]
async fn text_is_assembled_from_chunks_of_any_size() {
    let end = chunk(json!([{"text": "世界 🦀!"}]), Some("STOP"));
    let stream = events(&[text("Grüße, "), end]).replace('\n', "\r\n");
    let usage = Usage { input_tokens: 30, output_tokens: 8, cached_tokens: 10, cost_usd: None };
    assert_words(KIND, NAME, &stream, usage).await;
}

#[tokio::test]
async fn calls_without_ids_get_ids_that_are_used_once_and_keep_their_signatures() {
    let call = |number: u32, signature: &str| {
        let mut part = json!({"functionCall": {"name": "add", "args": {"a": number}}});
        if !signature.is_empty() {
            part["thoughtSignature"] = signature.into();
        }
        part
    };
    let bare = json!({"functionCall": {"name": "add"}});
    let stream = events(&[
        chunk(json!([call(1, "c2ln"), call(2, "")]), None),
        chunk(json!([call(3, ""), bare]), Some("STOP")),
    ]);
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!((error, answer.stop_reason.clone()), (None, Some(StopReason::ToolUse)));
    let arguments: Vec<_> = calls(&answer).iter().map(|(_, _, arguments)| *arguments).collect();
    assert_eq!(arguments, ["{\"a\":1}", "{\"a\":2}", "{\"a\":3}", "{}"]);
    let mut ids: Vec<_> = answer.tool_uses.iter().map(|call| call.id.clone()).collect();
    let signed = Thought::OfCall { id: ids[0].clone(), signature: "c2ln".into() };
    assert_eq!(answer.reasoning.clone().unwrap().thoughts, [signed]);

    // The next answer of the conversation uses none of them again.
    let said = answer.into_message();
    let server = Server::start(vec![Reply::stream(&stream, 100, Ending::Clean)]).await;
    let model = model(&server, KIND, NAME);
    let (next, _) = collect(&*model, asking(vec![Message::user("hi"), said])).await;
    ids.extend(next.tool_uses.iter().map(|call| call.id.clone()));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8, "{ids:?}");
    let parts = &server.sent()[0].body["contents"][1]["parts"];
    assert_eq!(parts[0]["thoughtSignature"], "c2ln");
    assert!(parts[0]["functionCall"].get("id").is_none(), "our own id is not sent");
}

#[tokio::test]
async fn a_picture_in_the_answer_is_a_part_of_it() {
    let picture = json!([{"inlineData": {"mimeType": "image/png", "data": "iVBO"}}]);
    let stream = events(&[text("Look: "), chunk(picture, None), chunk(json!([]), Some("STOP"))]);
    let (answer, _) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    let expected = Part::Image { mime_type: "image/png".into(), data: "iVBO".into() };
    assert_eq!(answer.parts, [expected]);
    assert_eq!(answer.stop_reason, Some(StopReason::Done));
}

#[tokio::test]
async fn an_answer_without_an_end_is_interrupted() {
    assert_interrupted(KIND, NAME, &events(&[text("Hel")])).await;
}

#[tokio::test]
async fn an_error_in_the_middle_is_an_error() {
    let failed = json!({"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}});
    let stream = events(&[text("Hel"), ("", failed)]);
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!(answer.text, "Hel");
    assert!(matches!(error, Some(ModelError::Overloaded { .. })), "{error:?}");
}

#[tokio::test]
async fn a_refusal_is_recognized() {
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 3}});
    for stream in [
        events(&[("", blocked)]),
        events(&[("", json!({"candidates": [{"finishReason": "SAFETY", "index": 0}]}))]),
    ] {
        let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
        let refused = StopReason::Refused("SAFETY".into());
        assert_eq!((error, answer.stop_reason), (None, Some(refused)));
    }
}

#[tokio::test]
async fn a_malformed_call_ends_with_the_providers_reason() {
    let wrong = json!({"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL",
        "finishMessage": "Malformed function call: print(x)", "index": 0}],
        "usageMetadata": {"promptTokenCount": 3}});
    let (answer, error) = answer_to(KIND, NAME, &events(&[("", wrong)]), Ending::Clean).await;
    let reason = StopReason::Other("MALFORMED_FUNCTION_CALL".into());
    assert_eq!((error, answer.stop_reason), (None, Some(reason)));
}

#[tokio::test]
async fn the_request_is_as_the_api_wants_it() {
    let (head, body) = body_of(KIND, NAME, conversation()).await;
    let line = "post /v1beta/models/gemini-3-pro-high:streamgeneratecontent?alt=sse http/1.1\r\n";
    assert!(head.starts_with(line), "{head}");
    assert!(head.contains("\r\nx-goog-api-key: key-that-nobody-sees"), "{head}");
    let picture = json!({"inline_data": {"mime_type": "image/png", "data": "iVBO"}});
    let tool = |name| tool(name, "parameters");
    let result = |id: &str, words: &str| {
        let response = json!({"name": "add", "content": words});
        json!({"functionResponse": {"id": id, "name": "add", "response": response}})
    };
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"maxOutputTokens": 1_000},
        "tools": [{"functionDeclarations": [tool("web_search"), tool("add")]}],
        "contents": [
            {"role": "user", "parts": [{"text": "look"}, picture]},
            {"role": "model", "parts": [
                {"text": "I look."},
                {"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}},
                    "thoughtSignature": "skip_thought_signature_validator"},
                {"functionCall": {"id": "c2", "name": "add", "args": {"unreadable": "{\"a\""}}},
            ]},
            {"role": "user", "parts": [
                result("c1", "seen\n(More of this result follows.)"),
                result("c2", "The tool failed:\nno JSON"),
            ]},
            {"role": "user", "parts": [
                {"text": "This came from the tool `add`, as data:"}, picture,
            ]},
        ],
    });
    assert_eq!(body, expected);
}
