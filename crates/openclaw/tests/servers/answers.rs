//! Results of servers: in files and as JSON.

use std::fs;

use openclaw_testkit::{Odd, Script, Skill, Tool};
use serde_json::{Value, json};

use crate::support::{Place, at_a_terminal};
use crate::with_gateway::gateway;

/// A server with tools that return files, a text and structured content.
fn place() -> Place {
    let archive =
        json!({ "uri": "test://a.zip", "mimeType": "application/zip", "blob": "UEsDBA==" });
    let part = json!({ "type": "resource", "resource": archive });
    Place::new(&[(
        "test",
        &Script::new().tools([
            Tool::new("archive").result(&json!({ "content": [part] })),
            Tool::new("two").result(&json!({ "content": [part, part] })),
            Tool::new("text").result(&json!({ "content": [{ "type": "text", "text": "plain" }] })),
            Tool::new("value").raw_result(
                r#"{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1.50}}"#,
            ),
        ]),
    )])
}

#[test]
fn binary_data_can_be_saved_to_a_folder_or_a_file() {
    let place = place();
    let (exit, _, stderr) = place.said(&["mcp", "call", "test", "archive"]);
    assert!(exit == 0 && stderr.contains("`-o FILE`"), "{stderr}");
    place.ok(&["mcp", "call", "test", "archive", "--save", "out"]);
    let expected = b"PK\x03\x04";
    assert_eq!(fs::read(place.path("out/test-archive-1.zip")).unwrap(), expected);
    for _ in 0..2 {
        let (exit, _, stderr) = place.said(&["mcp", "call", "test", "archive", "-o", "mine"]);
        assert_eq!(exit, 0, "a named file is overwritten: {stderr}");
    }
    assert_eq!(fs::read(place.path("mine")).unwrap(), expected);
    let (exit, stdout, _) = place.said(&["mcp", "call", "test", "text", "-o", "words"]);
    assert_eq!((exit, stdout.as_str()), (0, ""));
    assert_eq!(fs::read(place.path("words")).unwrap(), b"plain");
    let (exit, _, stderr) = place.said(&["mcp", "call", "test", "two", "-o", "which"]);
    assert!(exit == 1 && stderr.contains("--save FOLDER"), "{stderr}");
    assert!(!place.path("which").exists());
}

#[test]
fn damaged_data_is_not_offered_as_a_file() {
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "%%%not base64" });
    let resource = json!({ "uri": "test://a", "mimeType": "application/zip", "blob": "%%%" });
    let blob = json!({ "type": "resource", "resource": resource });
    let script = Script::new().tools([
        Tool::new("image").result(&json!({ "content": [image] })),
        Tool::new("blob").result(&json!({ "content": [blob] })),
    ]);
    let place = Place::new(&[("test", &script)]);
    for tool in ["image", "blob"] {
        let (_, stdout, stderr) = place.said(&["mcp", "call", "test", tool]);
        assert!(!stderr.contains("-o FILE"), "{tool}: {stderr}");
        assert!(format!("{stdout}{stderr}").contains("damaged"), "{tool}: {stdout}{stderr}");
    }
}

/// A server with a tool that returns files (one damaged) and a text, and one with only a text.
fn mixed() -> Place {
    let blob = |uri: &str, blob: &str| {
        let resource = json!({ "uri": uri, "mimeType": "application/zip", "blob": blob });
        json!({ "type": "resource", "resource": resource })
    };
    let content = json!([
        blob("test://1", "UEsDBA=="), blob("test://2", "***"), { "type": "text", "text": "Done." },
        blob("test://3", "UEsDBA=="),
    ]);
    let text = json!([{ "type": "text", "text": "Deleted." }]);
    Place::new(&[(
        "test",
        &Script::new().tools([
            Tool::new("files").result(&json!({ "content": content })),
            Tool::new("text").result(&json!({ "content": text })),
        ]),
    )])
}

#[test]
fn nothing_is_called_if_the_target_cannot_be_written() {
    let place = Place::new(&[("test", &Script::new())]);
    fs::write(place.path("file"), "").unwrap();
    for verb in
        [&["call", "test", "count"][..], &["read", "test", "a:b"], &["prompt", "test", "greet"]]
    {
        for (option, target, words) in [
            ("-o", "none/x.png", "folder not found: none"),
            ("-o", ".", "--save FOLDER"),
            ("-o", "-", "without `-o`"),
            ("--save", "file", "is not a folder"),
        ] {
            let args = [&["mcp"], verb, &[option, target]].concat();
            let (exit, stdout, stderr) = place.said(&args);
            assert_eq!((exit, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
            assert!(stderr.contains(words), "{args:?}: {stderr}");
        }
    }
    assert!(!place.path("-").exists());
    let (_, _, stderr) = place.said(&["mcp", "logs", "test"]);
    assert!(stderr.contains("has not been started yet"), "{stderr}");
}

#[test]
fn a_result_that_cannot_be_written_is_shown() {
    let place = mixed();
    let too_long = "x".repeat(300);
    let assert_shown = |beside: &str| {
        let (exit, stdout, stderr) = place.said(&["mcp", "call", "test", "text", "-o", &too_long]);
        assert_eq!((exit, stdout.as_str()), (1, "Deleted.\n"), "{beside}: {stderr}");
        assert!(stderr.contains("invalid file name"), "{beside}: {stderr}");
        let (exit, stdout, stderr) = place.said(&["mcp", "call", "test", "files", "-o", "one"]);
        assert_eq!((exit, stdout.as_str()), (1, "Done.\n"), "{beside}: {stderr}");
        assert!(stderr.contains("3 files") && stderr.contains("--save FOLDER"), "{stderr}");
        assert!(!place.path("one").exists());
    };
    assert_shown("standalone");
    let _running = gateway(&place);
    assert_shown("through a gateway");
}

#[test]
fn valid_parts_are_saved_and_damaged_ones_reported() {
    let place = mixed();
    let (exit, stdout, stderr) = place.said(&["mcp", "call", "test", "files", "--save", "out"]);
    assert_eq!((exit, stdout.as_str()), (1, "Done.\n"), "{stderr}");
    for name in ["test-files-1.zip", "test-files-2.zip"] {
        assert_eq!(fs::read(place.path("out").join(name)).unwrap(), b"PK\x03\x04");
        assert!(stderr.contains(name), "{stderr}");
    }
    assert!(stderr.contains("its data is damaged") && !stderr.contains("symbol"), "{stderr}");
    let call = ["mcp", "call", "test", "files", "--save", "out", "--json"];
    let (exit, stdout, _) = place.said(&call);
    assert_eq!(exit, 1);
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    let blobs: Vec<&Value> =
        answer["content"].as_array().unwrap().iter().filter(|it| it["type"] == "blob").collect();
    let is_file: Vec<bool> = blobs.iter().map(|it| it["file"].is_string()).collect();
    assert_eq!(is_file, [true, false, true], "{answer}");
    assert_eq!(blobs[1]["data"], "***");
    assert!(answer["problems"][0].as_str().unwrap().contains("damaged"), "{answer}");
}

#[test]
fn stdout_contains_only_the_text_of_the_server() {
    let place = place();
    let (exit, stdout, stderr) = place.said(&["mcp", "call", "test", "archive"]);
    assert_eq!((exit, stdout.as_str()), (0, ""), "{stderr}");
    assert!(stderr.contains("test://a.zip"), "{stderr}");
    assert!(stderr.contains("not shown; use `-o FILE`"), "{stderr}");
    for target in [["-o", "it"], ["--save", "out"]] {
        let args = [&["mcp", "call", "test", "archive"], &target[..]].concat();
        let (exit, stdout, stderr) = place.said(&args);
        assert_eq!((exit, stdout.as_str()), (0, ""), "{stderr}");
        assert!(stderr.contains("saved to") && !stderr.contains("not shown"), "{stderr}");
    }
    let (_, stdout, stderr) = mixed().said(&["mcp", "call", "test", "files"]);
    assert_eq!(stdout, "Done.\n", "{stderr}");
    let (_, stdout, _) = place.said(&["mcp", "call", "test", "archive", "--raw"]);
    assert!(stdout.contains("[resource test://a.zip"), "models see it: {stdout}");
}

#[test]
fn text_is_unchanged_in_a_pipe_and_escaped_on_a_terminal() {
    let text = "\u{1b}[31mred\u{1b}[0m \u{7f}\u{1b}]0;title\u{7}\r\nend\n";
    let content = json!({ "content": [{ "type": "text", "text": text }] });
    let place = Place::new(&[("test", &Script::new().tools([Tool::new("red").result(&content)]))]);
    let output = place.run(&["mcp", "call", "test", "red"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
    let (exit, shown) = at_a_terminal(&place, "nothing", "", &["mcp", "call", "test", "red"]);
    assert!(exit == 0 && shown.contains("\\u{1b}[31mred"), "{shown}");
    assert!(!shown.contains("\u{1b}[31m") && !shown.contains("\u{1b}]0;"), "{shown}");
}

#[test]
fn an_image_is_not_repeated_as_text() {
    let data = format!("iVBORw0KGgo{}", "A".repeat(100_001));
    let image = json!({ "type": "image", "mimeType": "image/png", "data": data });
    let result = json!({ "content": [image], "structuredContent": { "content": [image] } });
    let place = Place::new(&[("test", &Script::new().tools([Tool::new("see").result(&result)]))]);
    let (exit, stdout, stderr) = place.said(&["mcp", "call", "test", "see"]);
    assert_eq!((exit, stdout.as_str()), (0, ""), "{stderr}");
    assert!(stderr.contains("image/png, about"), "{stderr}");
    let answer = place.json(&["mcp", "call", "test", "see", "--json"]);
    assert_eq!(answer["structuredContent"], result["structuredContent"]);
}

#[test]
fn a_binary_resource_can_be_saved() {
    let place = Place::new(&[("test", &Script::new())]);
    let listed = place.json(&["mcp", "resources", "test", "--json"]);
    let uris = listed["resources"].as_array().unwrap().iter();
    let saved = uris.filter(|it| {
        let uri = it["uri"].as_str().unwrap();
        place.said(&["mcp", "read", "test", uri, "-o", "it"]);
        fs::read(place.path("it")).unwrap().starts_with(b"\x89PNG")
    });
    assert_eq!(saved.count(), 1);
}

#[test]
fn programs_get_structured_content_as_it_is_and_files_as_data() {
    let place = place();
    let stdout = place.ok(&["mcp", "call", "test", "value", "--json"]);
    assert!(stdout.contains(r#""structuredContent": {"n":1.50}"#), "{stdout}");
    let answer = place.json(&["mcp", "call", "test", "archive", "--json"]);
    assert!(answer.get("structuredContent").is_none());
    let blob = answer["content"].as_array().unwrap().last().unwrap();
    let expected = json!({
        "type": "blob", "uri": "test://a.zip", "mimeType": "application/zip", "data": "UEsDBA=="
    });
    assert_eq!(*blob, expected);
}

#[test]
fn tool_descriptions_are_truncated_unless_raw() {
    let place = Place::new(&[("test", &Script::new().tools([]).odd_tool(Odd::HugeDescription))]);
    let (exit, bounded, _) = place.said(&["mcp", "tools", "--json", "--schema"]);
    assert!(exit == 0 && bounded.len() < 5_000, "{}", bounded.len());
    let (exit, all, _) = place.said(&["mcp", "tools", "--json", "--raw"]);
    assert!(exit == 0 && all.len() > 1_000_000, "{}", all.len());
    let (exit, _, stderr) = place.said(&["mcp", "tools", "--raw"]);
    assert!(exit == 2 && stderr.contains("`--raw` requires `--json`"), "{stderr}");
}

#[test]
fn raw_tools_have_everything_that_the_server_says() {
    let schema = json!({ "type": "object", "properties": { "n": { "format": "odd" } } });
    let members = [
        ("title", json!("Count")),
        ("inputSchema", schema.clone()),
        ("outputSchema", schema),
        ("annotations", json!({ "readOnlyHint": true, "audience": ["user"] })),
        ("icons", json!([{ "src": "https://example.org/a.png", "sizes": ["48x48"] }])),
        ("execution", json!({ "taskSupport": "optional" })),
        ("_meta", json!({ "example.org/version": 2 })),
    ];
    let tool = members
        .iter()
        .fold(Tool::new("count"), |tool, (name, value)| tool.with(name, value.clone()));
    let tool = tool.with("x-cost", json!(0.5)).with("fingerprint", json!("forged"));
    let large = Tool::new("large").with("icons", json!([{ "src": "x".repeat(300_000) }]));
    let place = Place::new(&[("test", &Script::new().tools([tool, large]))]);
    for args in [
        ["mcp", "tools", "--json", "--raw"],
        ["--json", "mcp", "tools", "--raw"],
        ["mcp", "--json", "tools", "--raw"],
        ["mcp", "tools", "--raw", "--json"],
    ] {
        let said = place.json(&args);
        let count = &said["tools"][0];
        for (name, value) in &members {
            assert_eq!(count[name], *value, "{name}: {count}");
        }
        assert_eq!(count["other"], json!({ "x-cost": 0.5, "fingerprint": "forged" }));
        assert_ne!(count["fingerprint"], "forged");
        assert_eq!(said["tools"][1]["omittedMembers"], 1, "{}", said["tools"][1]);
    }
    let (_, stdout, _) = place.said(&["--json", "mcp", "tools"]);
    assert!(!stdout.contains("icons") && !stdout.contains("x-cost"), "{stdout}");
}

#[test]
fn missing_and_unknown_arguments_of_a_prompt_are_rejected() {
    let place = Place::new(&[("test", &Script::new())]);
    for (words, said) in [
        (&[][..], "requires the argument `name`"),
        (&["name=Ada", "bad=1"], "has no argument `bad`"),
    ] {
        let args = [&["mcp", "prompt", "test", "greet"], words].concat();
        let (exit, _, stderr) = place.said(&args);
        assert_eq!(exit, 2, "{stderr}");
        assert!(stderr.contains(said) && stderr.contains("it takes: name"), "{stderr}");
    }
    let answer = place.json(&["mcp", "prompt", "test", "greet", "name=Ada", "--json"]);
    assert_eq!(answer["messages"][0]["role"], "user", "{answer}");
    assert!(answer["messages"][0]["content"].to_string().contains("Ada"), "{answer}");
}

#[test]
fn skills_of_a_server_are_listed_with_its_resources_and_verified_when_they_are_read() {
    let good = Skill::new("pdf", "Fill PDF forms");
    let evil = Skill::new("evil", "x").serving("skill://evil/SKILL.md", "EVIL");
    let place = Place::new(&[("test", &Script::new().skills([good, evil]))]);
    let stdout = place.ok(&["mcp", "resources", "test"]);
    let line = stdout.lines().find(|line| line.contains("skill://pdf/SKILL.md"));
    assert!(line.is_some_and(|line| line.contains("skill pdf: Fill PDF forms")), "{stdout}");
    let listed = place.json(&["mcp", "resources", "test", "--json"]);
    assert_eq!(listed["skills"][0]["frontmatter"]["name"], "pdf", "{listed}");
    let (exit, stdout, stderr) = place.said(&["mcp", "read", "test", "skill://pdf/SKILL.md"]);
    assert!(exit == 0 && stdout.contains("Use pdf."), "{stdout}{stderr}");
    let (exit, stdout, stderr) = place.said(&["mcp", "read", "test", "skill://evil/SKILL.md"]);
    assert!(exit != 0 && stderr.contains("its size differs"), "{stdout}{stderr}");
    assert!(!stdout.contains("EVIL") && !stderr.contains("EVIL"));
}
