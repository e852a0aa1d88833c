//! What may stand in `tools`: which tools may be used, and how the built-in ones behave.

use super::{Millis, Words};
use crate::decode::{Whole, section};
use crate::schema;
use crate::text::Text;

section! {
    /// Which tools may be used: glob patterns on their names. Deny beats allow.
    struct RawPolicy("a tool policy", Leave) {
        /// Only these tools, if given.
        allow: Words = "allow",
        /// Not these tools.
        deny: Words = "deny",
    }
}

section! {
    /// Which tools may be used, by all agents, and how the built-in ones behave.
    struct RawTools("the tool settings", Leave) {
        /// Only these tools, if given: glob patterns on their names.
        allow: Words = "allow",
        /// Not these tools. Deny beats allow.
        deny: Words = "deny",
        /// Tools that use the web.
        web: RawWebTools = "web",
        /// The tool that runs commands.
        exec: RawExecTool = "exec",
        /// The tools that read and write files.
        fs: RawFsTools = "fs",
    }
}

section! {
    /// Tools that use the web.
    struct RawWebTools("the web tools", Leave) {
        /// The tool that fetches a page.
        fetch: RawFetchTool = "fetch",
    }
}

section! {
    /// The tool that fetches a page.
    struct RawFetchTool("the fetch tool", Leave) {
        /// Whether there is such a tool (true).
        enabled: bool = "enabled",
        /// Hosts of private networks that may be fetched from all the same: names, IP addresses or
        /// networks such as `10.1.0.0/16`.
        allow_private: Words = "allowPrivate" => schema::private_hosts,
        /// A longer page is cut (100000).
        max_chars: Whole<100, 100_000_000> = "maxChars",
        /// Milliseconds that a page may take (30000).
        timeout: Millis = "timeoutMs",
    }
}

section! {
    /// The tool that runs commands.
    struct RawExecTool("the exec tool", Leave) {
        /// Whether there is such a tool (true).
        enabled: bool = "enabled",
        /// Milliseconds that a command may take (60000).
        timeout: Millis = "timeoutMs",
        /// The shell that runs the commands, if not the usual one of the system.
        shell: Text = "shell" => schema::filled,
    }
}

section! {
    /// The tools that read and write files.
    struct RawFsTools("the file tools", Leave) {
        /// Whether there are such tools (true).
        enabled: bool = "enabled",
    }
}
