//! The tools whose arguments this program knows.

mod editor;

use agent_client_protocol::v1::schema::ToolKind;
use openclaw_tools::native::Native;

pub(crate) use self::editor::EditorTool;

/// A built-in tool of the agent, or one of the editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuiltinTool {
    Native(Native),
    Editor(EditorTool),
}

impl BuiltinTool {
    pub(crate) fn find(name: &str) -> Option<Self> {
        let native = Native::ALL.into_iter().find(|native| native.name() == name);
        native.map(Self::Native).or_else(|| EditorTool::find(name).map(Self::Editor))
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Native(native) => native.label(),
            Self::Editor(tool) => tool.title(),
        }
    }

    pub(crate) const fn kind(self) -> ToolKind {
        match self {
            Self::Native(Native::Read | Native::List) => ToolKind::Read,
            Self::Native(Native::Write | Native::Edit) => ToolKind::Edit,
            Self::Native(Native::Exec) => ToolKind::Execute,
            Self::Native(Native::WebFetch) => ToolKind::Fetch,
            Self::Native(Native::UpdatePlan) => ToolKind::Think,
            Self::Editor(tool) => tool.kind(),
        }
    }
}
