//! The persistent cache of the lists.

use openclaw_mcp::inventory::Inventory;
use openclaw_mcp::store::memory::{KnownProtocol, Memory};
use openclaw_mcp_client::connection::era::Era;
use openclaw_mcp_client::listing::ListedPrompt;
use serde_json::json;

use crate::support::load;

#[test]
fn a_failed_write_is_repeated_next_time() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("folder");
    let config = load(&json!({ "mcp": { "servers": { "x": { "command": "x" } } } }));
    let server = config.agents[0].mcp.servers.values().next().unwrap();
    let memory = Memory::of(&folder, "x", &server.connection);
    let prompt: ListedPrompt = serde_json::from_value(json!({ "name": "a" })).unwrap();
    let inventory = Inventory { prompts: vec![prompt], ..Inventory::default() };

    std::fs::write(&folder, "a file where the folder should be").unwrap();
    memory.keep(KnownProtocol::new(Era::Legacy, None), &inventory);
    std::fs::remove_file(&folder).unwrap();
    memory.keep(KnownProtocol::new(Era::Legacy, None), &inventory);
    assert_eq!(memory.recall().inventory, inventory);
    assert_eq!(memory.recall_manner().era, Some(Era::Legacy));
}
