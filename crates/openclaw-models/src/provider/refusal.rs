//! Identifies the tool because of which a provider rejected a request (B3).

use std::sync::Arc;

use crate::model::ToolOffer;

/// What precedes the index of a tool. Gemini's come first: all its tools are in `tools[0]`.
const BEFORE_NUMBER: [&str; 5] =
    ["function_declarations[", "functionDeclarations[", "tools[", "tools.", "tools/"];

/// Returns the tool whose index or name the provider's message contains.
pub(super) fn refused_tool(message: &str, param: &str, tools: &[Arc<ToolOffer>]) -> Option<String> {
    let numbered = [message, param].into_iter().find_map(|text| {
        let number = BEFORE_NUMBER.iter().find_map(|before| number_after(text, before))?;
        tools.get(number)
    });
    let named = || {
        let is_about_tools =
            ["function", "tool", "schema"].iter().any(|word| message.contains(word));
        tools.iter().find(|tool| is_about_tools && is_quoted(message, &tool.name))
    };
    numbered.or_else(named).map(|tool| tool.name.clone())
}

fn number_after(text: &str, before: &str) -> Option<usize> {
    text.match_indices(before).find_map(|(at, _)| {
        let rest = text.get(at + before.len()..)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest.get(..digits)?.parse().ok()
    })
}

fn is_quoted(message: &str, name: &str) -> bool {
    ['\'', '"', '`'].iter().any(|quote| message.contains(&format!("{quote}{name}{quote}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_tool_is_found_in_the_message_of_each_provider() {
        let tools: Vec<_> = ["zero", "one", "two", "three"]
            .map(|name| {
                let (name, schema) = (name.to_owned(), Arc::new(json!({})));
                Arc::new(ToolOffer { name, description: String::new(), schema })
            })
            .into();
        for (message, param, expected) in [
            ("tools.3.custom.input_schema: JSON schema is invalid", "", Some("three")),
            ("tools.1.custom.name: String should match pattern", "", Some("one")),
            ("Invalid schema for function 'two': array schema missing items", "", Some("two")),
            ("Invalid schema", "tools[1].function.parameters", Some("one")),
            ("Invalid 'tools[3].function.name': empty string.", "", Some("three")),
            (
                "* GenerateContentRequest.tools[0].function_declarations[2].parameters: should be",
                "",
                Some("two"),
            ),
            ("tools.9.custom.input_schema: invalid", "", None),
            ("tools: Tool names must be unique.", "tools", None),
            ("messages.3.content: Field required", "messages[3]", None),
        ] {
            assert_eq!(refused_tool(message, param, &tools).as_deref(), expected, "{message}");
        }
    }
}
