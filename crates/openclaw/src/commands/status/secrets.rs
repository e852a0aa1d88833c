//! Checks that secrets resolve and that a keychain is available. Values are never shown.

use std::time::Duration;

use openclaw_secrets::{Checked, ResolveErrorKind, Resolver, SecretRef};
use tokio::time::timeout;

use crate::commands::check::Check;
use crate::output::plural;

/// The timeout for the probe of the keychain.
const KEYCHAIN: Duration = Duration::from_secs(3);
/// An entry that does not exist: "not found" means that the keychain works.
const PROBE: &str = "secret://keychain/openclaw-probe";

/// Reports the results of all references, and probes the keychain.
pub(super) async fn checks(checked: &[Checked], resolver: &Resolver) -> Vec<Check> {
    let mut checks = Vec::new();
    if checked.is_empty() {
        checks.push(Check::note("none in the configuration"));
    } else {
        let resolved = checked.iter().filter(|it| it.error.is_none()).count();
        if resolved > 0 {
            let words = plural(resolved, "secret");
            let verb = if resolved == 1 { "resolves" } else { "resolve" };
            checks.push(Check::good(format!("{words} {verb}")));
        }
        for error in checked.iter().filter_map(|it| it.error.as_ref()) {
            checks.push(Check::bad(error.to_string(), error.hint().map(str::to_owned)));
        }
    }
    checks.push(keychain(resolver).await);
    checks
}

async fn keychain(resolver: &Resolver) -> Check {
    if !cfg!(feature = "keychain") {
        return Check::note("built without keychain support");
    }
    let Ok(probe) = PROBE.parse::<SecretRef>() else { return Check::note("no keychain") };
    let Ok(answer) = timeout(KEYCHAIN, resolver.check_all([&probe])).await else {
        return Check::note("the keychain does not respond");
    };
    let kind = answer.first().and_then(|it| it.error.as_ref()).map(|error| error.kind());
    match kind {
        None | Some(ResolveErrorKind::NotFound) => Check::good("keychain available"),
        Some(ResolveErrorKind::Denied) => Check::note("the keychain is locked"),
        Some(_) => Check::note("no keychain available; `secret://file/…` works without one"),
    }
}
