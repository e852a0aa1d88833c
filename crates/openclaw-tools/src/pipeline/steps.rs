//! The checks before a call is executed.

use openclaw_metrics::{Metrics, labels};
use serde_json::Value;

use super::refusal::Refusal;
use crate::approval::{
    ApprovalAnswer, ApprovalContext, ApprovalExtent, ApprovalNeed, ApprovalReason, ApprovalRequest,
    Fallback, Pin,
};
use crate::arguments::Arguments;
use crate::context::{CallContext, CallOptions, Consent};
use crate::policy::Decision;
use crate::schema::Validator;
use crate::source::Tool;

/// Checks that the policy allows the tool and these arguments, and that it is usable. Returns what
/// was seen and approved of it before.
pub(super) fn allowed(tool: &dyn Tool, about: ApprovalContext<'_>) -> Result<Pin, Refusal> {
    policy(tool, about.arguments)?;
    Ok(tool.pin(about))
}

fn policy(tool: &dyn Tool, arguments: &Arguments<'_>) -> Result<(), Refusal> {
    if let Decision::Denied { by } = tool.decision() {
        return Err(Refusal::policy(by));
    }
    if let Decision::Denied { by } = tool.decision_on(arguments) {
        return Err(Refusal::policy(&by));
    }
    match tool.flaw() {
        Some(flaw) => Err(Refusal::unusable(&flaw)),
        None => Ok(()),
    }
}

/// How a call was approved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Approved {
    /// `None` if no approval is needed.
    pub(super) given: Option<ApprovalExtent>,
    /// Whether the arguments were validated already: the user is not asked about a call that cannot
    /// be made.
    pub(super) is_schema_checked: bool,
    /// Whether the user took time to decide.
    pub(super) has_waited: bool,
}

/// Whether a call may be made.
#[derive(Debug)]
pub(super) enum Consented {
    /// At once; with an approval, if one is needed.
    Given(Option<ApprovalExtent>),
    /// Only if the approver agrees.
    Ask(ApprovalReason),
}

/// Decides whether an approval must be asked for.
pub(super) fn consent(
    tool: &dyn Tool,
    pin: Pin,
    about: ApprovalContext<'_>,
    context: &CallContext<'_>,
) -> Result<Consented, Refusal> {
    if let Consent::Caller { seen, approves_change } = context.consent {
        let is_seen = seen.map(|seen| tool.fingerprint() == Some(seen));
        let is_approved = approves_change && is_seen == Some(true);
        if is_seen == Some(false) || (pin == Pin::Changed && !is_approved) {
            return Err(Refusal::changed());
        }
        return Ok(Consented::Given(Some(ApprovalExtent::Once)));
    }
    let effect = tool.spec().effect;
    let need = ApprovalNeed::of(tool.rule(about.arguments), effect, pin);
    match context.options.permission.applied(need, effect) {
        None => Err(Refusal::read_only()),
        Some(ApprovalNeed::Ask(why)) => Ok(Consented::Ask(why)),
        Some(ApprovalNeed::Free) => Ok(Consented::Given(None)),
    }
}

/// Asks for an approval.
pub(super) async fn ask(
    tool: &dyn Tool,
    why: ApprovalReason,
    about: ApprovalContext<'_>,
    context: &CallContext<'_>,
    metrics: &Metrics,
) -> Result<Approved, Refusal> {
    // A caller that approves by calling is not asked.
    let Consent::Ask { approver, fallback } = context.consent else {
        return Err(Refusal::nobody());
    };
    let spec = tool.spec();
    schema(tool, about.arguments)?;
    about.arguments.check_members()?;
    let always = if why.can_last() { tool.always(about) } else { Vec::new() };
    let changes = match why {
        ApprovalReason::Changed => tool.changes().map_err(|it| Refusal::change_too_large(&it))?,
        _ => Vec::new(),
    };
    let question = ApprovalRequest {
        tool: spec,
        arguments: about.arguments.raw(),
        why,
        session: context.session,
        always: &always,
        changes: &changes,
    };
    metrics.approval_requested();
    let answer = approver.ask(question).await;
    metrics.approval_answered(match &answer {
        ApprovalAnswer::Yes(ApprovalExtent::Once) => labels::ApprovalAnswer::Once,
        ApprovalAnswer::Yes(ApprovalExtent::Always(_)) => labels::ApprovalAnswer::Always,
        ApprovalAnswer::No | ApprovalAnswer::Instead(_) => labels::ApprovalAnswer::Denied,
        ApprovalAnswer::Unanswered | ApprovalAnswer::NotAsked | ApprovalAnswer::NotEntitled(_) => {
            labels::ApprovalAnswer::Unanswered
        }
    });
    let given = match (answer, fallback) {
        // Only what was offered can be granted.
        (ApprovalAnswer::Yes(ApprovalExtent::Always(grant)), _)
            if !always.iter().any(|option| option.grant == grant) =>
        {
            ApprovalExtent::Once
        }
        (ApprovalAnswer::Yes(approval), _) => approval,
        (ApprovalAnswer::No, _) => return Err(Refusal::declined()),
        (ApprovalAnswer::Instead(words), _) => return Err(Refusal::declined_with(&words)),
        (
            ApprovalAnswer::Unanswered | ApprovalAnswer::NotAsked | ApprovalAnswer::NotEntitled(_),
            Fallback::Allow,
        ) if why.can_fall_back() => {
            let name = spec.name.as_str();
            tracing::warn!(tool = name, "no user to approve; allowed by the configuration");
            ApprovalExtent::Once
        }
        (ApprovalAnswer::NotEntitled(words), _) => return Err(Refusal::not_entitled(words, why)),
        (ApprovalAnswer::Unanswered | ApprovalAnswer::NotAsked, _)
            if why == ApprovalReason::Changed =>
        {
            return Err(Refusal::unreviewed());
        }
        (ApprovalAnswer::Unanswered, _) => return Err(Refusal::nobody()),
        (ApprovalAnswer::NotAsked, _) => return Err(Refusal::not_asked()),
    };
    // The user approved the definition that was shown.
    if !tool.is_current() {
        return Err(Refusal::changed());
    }
    Ok(Approved { given: Some(given), is_schema_checked: true, has_waited: true })
}

/// The last checks: the arguments, and the rate limits. An approval is stored.
pub(super) fn admit(
    tool: &dyn Tool,
    approved: &Approved,
    pin: Pin,
    about: ApprovalContext<'_>,
    options: CallOptions<'_>,
) -> Result<(), Refusal> {
    if !approved.is_schema_checked {
        schema(tool, about.arguments)?;
    }
    tool.limit(about.now, options).map_err(Refusal::limit)?;
    if let Some(given) = &approved.given {
        tool.keep(given, pin, about);
    }
    Ok(())
}

/// Validates the arguments.
fn schema(tool: &dyn Tool, arguments: &Arguments<'_>) -> Result<(), Refusal> {
    let validator = tool.validator();
    if validator.plainly_fits(arguments.raw()) {
        return Ok(());
    }
    let validator = validator.get().map_err(|unusable| Refusal::unusable(unusable))?;
    fits(validator, arguments)
}

/// Models often send `null` for omitted arguments: accepted where nothing is required.
fn fits(validator: &Validator, arguments: &Arguments<'_>) -> Result<(), Refusal> {
    let Some(value) = arguments.value() else {
        return validator.check_raw(arguments.raw()).map_err(|it| Refusal::misfit(&it));
    };
    let Err(violations) = validator.check(value) else { return Ok(()) };
    let members = arguments.members();
    let has_nulls = value.as_object().is_some_and(|all| members.len() < all.len());
    if has_nulls && validator.check(&Value::Object(members)).is_ok() {
        return Ok(());
    }
    Err(Refusal::misfit(&violations))
}
