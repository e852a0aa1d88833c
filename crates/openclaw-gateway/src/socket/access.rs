//! What a caller may be granted, depending on its token, its role and where it is.

use std::net::IpAddr;

use openclaw_protocol::{Principal, Scope};

/// Whether the two ends of a connection are on the same machine. A gateway that listens on one
/// address only is reached by that address from its own machine, too.
pub(super) fn is_same_machine(remote: IpAddr, local: IpAddr) -> bool {
    let remote = remote.to_canonical();
    remote.is_loopback() || remote == local.to_canonical()
}

/// Returns those of the requested scopes that a caller with this role gets.
pub(super) fn grant(principal: &Principal, role: &str, mut requested: Vec<String>) -> Vec<String> {
    // Only operators have their scopes: a node just answers requests.
    if role != "operator" {
        requested.retain(|scope| !scope.starts_with("operator."));
    }
    match principal {
        Principal::Operator => requested,
        Principal::RemoteOperator => {
            let held = Scope::NAMED.iter().filter(|scope| principal.has(**scope));
            let held: Vec<String> =
                held.filter_map(|scope| scope.name()).map(ToOwned::to_owned).collect();
            limited(&requested, &held)
        }
        Principal::Token(token) => limited(&requested, token.scopes()),
    }
}

/// The requested scopes that `held` includes. A request for administration without having it
/// becomes one for everything that is held: administration includes all other scopes.
fn limited(requested: &[String], held: &[String]) -> Vec<String> {
    let has = |scope: &String| Scope::from_name(scope).is_some_and(|scope| scope.is_in(held));
    let asks_for_all = requested.iter().any(|scope| Scope::from_name(scope) == Some(Scope::Admin));
    if asks_for_all && !Scope::Admin.is_in(held) {
        return held.to_vec();
    }
    requested.iter().filter(|scope| has(scope)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| format!("operator.{word}")).collect()
    }

    #[test]
    fn a_caller_gets_no_more_than_its_token_has() {
        let held = scopes(&["write"]);
        let got = |requested: &[&str]| limited(&scopes(requested), &held);
        assert_eq!(got(&["read", "write", "approvals"]), scopes(&["read", "write"]));
        assert_eq!(got(&["admin", "read"]), held, "administration stands for everything");
        assert_eq!(got(&["approvals"]), Vec::<String>::new());
        assert_eq!(got(&["unheard-of"]), Vec::<String>::new());
        let admin = scopes(&["admin"]);
        let all = scopes(&["admin", "read", "approvals"]);
        assert_eq!(limited(&all, &admin), all);
    }

    #[test]
    fn a_machine_reaches_itself_by_loopback_and_by_its_own_address() {
        let is_same = |remote: &str, local: &str| match (remote.parse(), local.parse()) {
            (Ok(remote), Ok(local)) => is_same_machine(remote, local),
            _ => unreachable!(),
        };
        assert!(is_same("127.0.0.1", "127.0.0.1") && is_same("::ffff:127.0.0.1", "::1"));
        assert!(is_same("192.0.2.7", "192.0.2.7") && is_same("::ffff:192.0.2.7", "192.0.2.7"));
        assert!(!is_same("192.0.2.8", "192.0.2.7") && !is_same("2001:db8::1", "::1"));
    }

    #[test]
    fn only_operators_on_this_machine_administrate_with_the_gateways_own_token() {
        use Principal::{Operator, RemoteOperator};
        let all = scopes(&["admin", "read", "write", "approvals", "questions"]);
        assert_eq!(grant(&Operator, "operator", all.clone()), all);
        let remote = grant(&RemoteOperator, "operator", all.clone());
        assert!(!Scope::Admin.is_in(&remote) && Scope::Approvals.is_in(&remote), "{remote:?}");
        assert!(Operator.has(Scope::Admin) && !RemoteOperator.has(Scope::Admin));
        for principal in [Operator, RemoteOperator] {
            assert!(principal.has(Scope::Write), "{principal}");
            assert_eq!(grant(&principal, "node", all.clone()), Vec::<String>::new(), "{principal}");
        }
    }
}
