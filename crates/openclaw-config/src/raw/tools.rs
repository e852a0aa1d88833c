//! The section `tools`: the tool policy and the settings of the built-in tools.

use super::{ApprovalPolicy, Millis, Words};
use crate::decode::{Whole, section};
use crate::schema;
use crate::text::ConfigText;

section! {
    /// A tool policy: glob patterns on tool names. Deny takes precedence.
    struct RawPolicy("a tool policy", Leave) {
        /// If given, only these tools.
        allow: Words = "allow",
        /// Never these tools.
        deny: Words = "deny",
    }
}

section! {
    /// The tool policy for all agents, and the settings of the built-in tools.
    struct RawTools("the tool settings", Leave) {
        /// If given, only these tools: glob patterns on tool names.
        allow: Words = "allow",
        /// Never these tools. Deny takes precedence.
        deny: Words = "deny",
        /// The web tools.
        web: RawWebTools = "web",
        /// The tool that runs commands.
        exec: RawExecTool = "exec",
        /// The tools that read and write files.
        fs: RawFsTools = "fs",
    }
}

section! {
    /// The web tools.
    struct RawWebTools("the web tools", Leave) {
        /// The tool that fetches web pages.
        fetch: RawFetchTool = "fetch",
    }
}

section! {
    /// The tool that fetches web pages.
    struct RawFetchTool("the fetch tool", Leave) {
        /// Whether the tool is available (true).
        enabled: bool = "enabled",
        /// Which fetches need the user's approval: `auto` means the first from each host in a session,
        /// `always` every one, `never` none.
        approval: ApprovalPolicy = "approval",
        /// Public hosts that need no approval, even where no user can give it: names such as
        /// `docs.rs`, or `*.example.com` for all below a name.
        allow_hosts: Words = "allowHosts" => schema::public_hosts,
        /// Private hosts that may be fetched from: names, IP addresses or networks such as
        /// `10.1.0.0/16`.
        allow_private: Words = "allowPrivate" => schema::private_hosts,
        /// Pages are truncated to this many characters (100000).
        max_chars: Whole<100, 100_000_000> = "maxChars",
        /// Timeout for fetching a page, in milliseconds (30000).
        timeout: Millis = "timeoutMs",
    }
}

section! {
    /// The tool that runs commands.
    struct RawExecTool("the exec tool", Leave) {
        /// Whether the tool is available (true).
        enabled: bool = "enabled",
        /// Timeout of a command, in milliseconds (60000).
        timeout: Millis = "timeoutMs",
        /// The shell that runs the commands, if not the system default.
        shell: ConfigText = "shell" => schema::filled,
    }
}

section! {
    /// The tools that read and write files.
    struct RawFsTools("the file tools", Leave) {
        /// Whether the tools are available (true).
        enabled: bool = "enabled",
    }
}
