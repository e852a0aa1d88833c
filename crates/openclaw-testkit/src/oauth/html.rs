//! Just enough HTML to submit the forms of login and consent pages.

/// A form with its fields.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) action: String,
    pub(super) fields: Vec<Field>,
}

/// An input or a button.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    /// `hidden`, `text`, `password`, `submit`, …
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) value: String,
}

/// Returns the first form of a page.
pub(super) fn form(page: &str) -> Option<Form> {
    let mut tags = tags(page).skip_while(|(name, _)| *name != "form");
    let (_, attributes) = tags.next()?;
    let inside = tags.take_while(|(name, _)| *name != "/form");
    let fields = inside.filter(|(name, _)| matches!(*name, "input" | "button"));
    let fields = fields.map(|(tag, attributes)| Field {
        kind: match attribute(attributes, "type") {
            kind if !kind.is_empty() => kind,
            _ if tag == "button" => "submit".into(),
            _ => "text".into(),
        },
        name: attribute(attributes, "name"),
        value: attribute(attributes, "value"),
    });
    Some(Form { action: attribute(attributes, "action"), fields: fields.collect() })
}

/// Returns the target of the first link whose text contains this.
pub(super) fn link(page: &str, text: &str) -> Option<String> {
    page.split("<a ").skip(1).find_map(|rest| {
        let (attributes, rest) = rest.split_once('>')?;
        let label = rest.split("</a>").next()?;
        label.contains(text).then(|| attribute(attributes, "href"))
    })
}

/// The name and the attributes of each tag.
fn tags(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split('<').skip(1).map(|rest| {
        let tag = rest.split('>').next().unwrap_or_default().trim_end_matches('/');
        tag.split_once(|c: char| c.is_whitespace()).unwrap_or((tag, ""))
    })
}

/// Returns the value of an attribute in quotes; empty if there is none.
fn attribute(attributes: &str, name: &str) -> String {
    let value = attributes.match_indices(name).find_map(|(at, _)| {
        let begins = attributes[..at].chars().next_back().is_none_or(char::is_whitespace);
        let rest = attributes[at + name.len()..].strip_prefix('=').filter(|_| begins)?;
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        rest[1..].split(quote).next()
    });
    let value = value.unwrap_or_default();
    let value = value.replace("&quot;", "\"").replace("&#39;", "'").replace("&#x2F;", "/");
    value.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_with_its_fields() {
        let page = r#"<p>Hi</p><form autocomplete="off" action="/a?b=1&amp;c=2" method="post">
            <input type="hidden" name="prompt" value="login"/>
            <input required type="password" name="password" autofocus>
            <button name='go' value='yes'>Sign-in</button></form><input name="outside">"#;
        let field = |kind: &str, name: &str, value: &str| Field {
            kind: kind.into(),
            name: name.into(),
            value: value.into(),
        };
        let fields = vec![
            field("hidden", "prompt", "login"),
            field("password", "password", ""),
            field("submit", "go", "yes"),
        ];
        assert_eq!(form(page), Some(Form { action: "/a?b=1&c=2".into(), fields }));
        assert_eq!(form("<p>none</p>"), None);
    }

    #[test]
    fn a_link_is_found_by_its_text() {
        let page = r#"<a href="/terms">Terms</a> <a class="x" href="/abort">[ Cancel ]</a>"#;
        assert_eq!(link(page, "Cancel").as_deref(), Some("/abort"));
        assert_eq!(link(page, "Help"), None);
    }
}
