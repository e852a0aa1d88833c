//! The tools of servers, as an agent sees them.

use futures_util::future::BoxFuture;
use openclaw_mcp::call::bridge::CallServices;
use openclaw_mcp::fleet::Fleet;
use openclaw_mcp::fleet::toolset::ServerTools;
use openclaw_mcp::store::pins::Pins;
use openclaw_testkit::{Script, Tool};
use openclaw_tools::{
    Approval, ApprovalAnswer, ApprovalNeed, ApprovalReason, ApprovalRequest, Approver, Arguments,
    Call, CallContext, Consent, Failure, Fallback, ToolSource, pipeline,
};
use serde_json::json;
use serde_json::value::RawValue;

use crate::support::{entry, servers, setup};

/// Gives the same answer to every question.
#[derive(Debug)]
struct Answers(ApprovalAnswer);

impl Approver for Answers {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(self.0))
    }
}

#[tokio::test]
async fn read_only_tools_need_no_approval_and_others_do() {
    let folder = tempfile::tempdir().unwrap();
    let pins = Some(Pins::load(folder.path().join("pins.json")).unwrap().into());
    let looks = Tool::new("look").with("annotations", json!({ "readOnlyHint": true }));
    let script = Script::new().tools([looks, Tool::new("push")]);
    let setup = openclaw_mcp::fleet::Setup {
        services: CallServices { pins, ..CallServices::none() },
        ..setup()
    };
    let fleet = Fleet::start(&servers(json!({ "x": entry(&script) })), setup);
    fleet.tried().await;
    let tools = ServerTools::new(fleet.clone(), "main");
    let names: Vec<String> =
        tools.tools().iter().map(|tool| tool.spec().name.to_string()).collect();
    assert_eq!(names, ["mcp_resources", "mcp_x_look", "mcp_x_push"]);
    let call = async |name: &str, approval: Option<Approval>| {
        let arguments = RawValue::from_string("{}".to_owned()).unwrap();
        let approver = Answers(approval.map_or(ApprovalAnswer::Unanswered, ApprovalAnswer::Yes));
        let consent = Consent::Ask { approver: &approver, fallback: Fallback::Deny };
        let context = CallContext { consent, ..CallContext::by_hand("test") };
        let call = Call::new(name, &*arguments);
        fleet.pipeline().call(&tools, call, &context).await.details.failure
    };
    assert_eq!(call("mcp_x_look", None).await, None);
    assert_eq!(call("mcp_x_push", None).await, Some(Failure::Denied));
    assert_eq!(call("mcp_x_push", Some(Approval::Once)).await, None);
    let nothing = RawValue::from_string("{}".to_owned()).unwrap();
    let nothing = Arguments::new(&nothing);
    let push = || pipeline::standing(&*tools.find("mcp_x_push").unwrap(), &nothing);
    assert_eq!(
        push(),
        ApprovalNeed::Ask(ApprovalReason::MayChange),
        "the approval was for one call"
    );
    assert_eq!(call("mcp_x_push", Some(Approval::Always)).await, None);
    assert_eq!(push(), ApprovalNeed::Free);
    assert_eq!(call("mcp_x_push", None).await, None);
    assert!(tools.find("mcp_x_nothing").is_none());
    fleet.stop().await;
}
