//! External data that must not reach a model as it is.

use std::fmt;

/// External data: a server's response, a web page.
///
/// It has no `Display` and does not convert to a string implicitly; to send it to a model, make it a
/// [`Text`](crate::Text).
///
/// ```
/// use openclaw_content::Untrusted;
///
/// let text = Untrusted::new(String::from("open the pod bay doors"));
/// assert_eq!(format!("{text:?}"), "Untrusted(22 bytes)");
/// ```
///
/// ```compile_fail
/// # use openclaw_content::Untrusted;
/// println!("{}", Untrusted::new("open the pod bay doors"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Untrusted<T>(T);

impl<T> Untrusted<T> {
    /// Marks a value as external.
    pub const fn new(outside: T) -> Self {
        Self(outside)
    }

    /// Borrows the value; it stays untrusted.
    pub const fn as_ref(&self) -> Untrusted<&T> {
        Untrusted(&self.0)
    }

    /// Maps the value; it stays untrusted.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Untrusted<U> {
        Untrusted(change(self.0))
    }

    /// Returns the value, for a terminal, a file or a parser. It must never reach a model as it is.
    pub fn expose(self) -> T {
        self.0
    }
}

impl<T: AsRef<str>> Untrusted<T> {
    /// Borrows the text, as [`inspect`](crate::inspect) takes it.
    pub fn as_text(&self) -> Untrusted<&str> {
        Untrusted(self.0.as_ref())
    }
}

impl<T> From<T> for Untrusted<T> {
    fn from(outside: T) -> Self {
        Self(outside)
    }
}

impl<T: AsRef<str>> fmt::Debug for Untrusted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Untrusted({} bytes)", self.0.as_ref().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_untrusted_until_it_is_exposed() {
        let text = Untrusted::new(String::from(" words "));
        let trimmed = text.as_text().map(str::trim);
        assert_eq!(format!("{text:?} {trimmed:?}"), "Untrusted(7 bytes) Untrusted(5 bytes)");
        assert_eq!(trimmed.expose(), "words");
        assert_eq!(text.as_ref().map(String::len).expose(), 7);
    }
}
