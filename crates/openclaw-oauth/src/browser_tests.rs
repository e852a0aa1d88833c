use super::*;

fn url() -> Url {
    "https://login.example/authorize?a=1&b=$(touch%20x);c".parse().unwrap()
}

fn environment(browser: Option<&str>) -> BrowserEnvironment {
    let browser_variable = browser.map(str::to_owned);
    BrowserEnvironment { browser_variable, ..BrowserEnvironment::default() }
}

#[test]
fn no_browser_is_opened_over_ssh_or_without_display() {
    let ssh = BrowserEnvironment { display: true, ssh: true, ..BrowserEnvironment::default() };
    assert_eq!(commands(&url(), &ssh), Err(NoBrowser::Ssh));
    if cfg!(not(any(target_os = "macos", windows))) {
        assert_eq!(commands(&url(), &environment(None)), Err(NoBrowser::NoDisplay));
        assert_eq!(commands(&url(), &environment(Some(" "))), Err(NoBrowser::NoDisplay));
    }
}

#[test]
fn only_web_addresses_are_opened() {
    let display = BrowserEnvironment { display: true, ..environment(None) };
    for text in ["file:///etc/passwd", "javascript:1", "mailto:a@b.example", "calculator://"] {
        let opened = commands(&text.parse().unwrap(), &display);
        assert_eq!(opened, Err(NoBrowser::NotWeb), "{text}");
    }
}

#[test]
fn the_url_is_one_argument_and_never_the_program() {
    let display = BrowserEnvironment { display: true, ..environment(None) };
    for command in commands(&url(), &display).unwrap() {
        assert_eq!(command.last().map(String::as_str), Some(url().as_str()));
        assert_ne!(command[0], url().as_str());
    }
    let parsed = |text| parse(text, &url()).unwrap();
    assert_eq!(parsed("firefox"), ["firefox", url().as_str()]);
    assert_eq!(parsed("lynx -x %s -y"), ["lynx", "-x", url().as_str(), "-y"]);
    assert_eq!(parsed("%s"), ["%s", url().as_str()]);
    assert_eq!(parse(" ", &url()), None);
}

/// Writes a script and returns the command to run it. A script needs no permission, and cannot be
/// busy.
#[cfg(unix)]
fn script(folder: &tempfile::TempDir, text: &str) -> String {
    let path = folder.path().join("script");
    std::fs::write(&path, text).unwrap();
    format!("sh {}", path.display())
}

#[cfg(unix)]
#[tokio::test]
async fn the_first_command_that_works_gets_the_url() {
    let folder = tempfile::tempdir().unwrap();
    let opened = folder.path().join("opened");
    let script = script(&folder, &format!("printf %s \"$1\" > {}", opened.display()));
    let list = format!("/no/such/browser:false:{script}:false");
    assert_eq!(open(&url(), &environment(Some(&list))).await, Ok(()));
    assert_eq!(std::fs::read_to_string(opened).unwrap(), url().as_str());
}

#[cfg(unix)]
#[tokio::test]
async fn a_missing_browser_is_reported_with_its_name() {
    let error = open(&url(), &environment(Some("/no/such/browser"))).await.unwrap_err();
    assert!(error.to_string().contains("/no/such/browser"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_browser_that_keeps_running_counts_as_opened() {
    let folder = tempfile::tempdir().unwrap();
    let script = script(&folder, "exec sleep 4");
    assert_eq!(open(&url(), &environment(Some(&script))).await, Ok(()));
}
