//! The folders of a session: what relative paths mean, and which paths are refused.

use std::path::{Component, Path, PathBuf};

/// The folders of a session.
#[derive(Debug, Default)]
pub(crate) struct SessionFolders {
    /// Those of the client: the first one is its current folder.
    pub(crate) client: Vec<PathBuf>,
    /// The folder of the agent's own file tools.
    pub(crate) workspace: Option<PathBuf>,
    /// The folder that turns work in, if it is not the agent's own workspace.
    pub(crate) turns: Option<PathBuf>,
}

impl SessionFolders {
    pub(crate) fn cwd(&self) -> &Path {
        self.client.first().map_or(Path::new("/"), PathBuf::as_path)
    }

    /// Resolves a path, which must be in one of the folders, also when links are followed.
    pub(crate) fn inside(&self, path: &str) -> Result<PathBuf, String> {
        let path = self.as_the_client_writes(normal(&self.cwd().join(path)));
        let is_in = |path: &Path, folder: &Path| path.starts_with(normal(folder));
        let outside = || format!("{} is outside the session's folders", path.display());
        if !self.client.iter().any(|folder| is_in(&path, folder)) {
            return Err(outside());
        }
        // The client may be on another machine: then there is nothing to follow here.
        if !self.cwd().exists() {
            return Ok(path);
        }
        // The part that exists. A link whose target is missing exists, too: a file that is written
        // through it would be elsewhere.
        let existing = path.ancestors().find(|it| it.symlink_metadata().is_ok());
        let real =
            |folder: &PathBuf| openclaw_files::canonical(folder).unwrap_or_else(|_| folder.clone());
        let is_inside = match existing.map(openclaw_files::canonical) {
            None => true,
            Some(Err(_)) => false,
            Some(Ok(existing)) => self.client.iter().any(|folder| is_in(&existing, &real(folder))),
        };
        if is_inside { Ok(path) } else { Err(outside()) }
    }

    /// Replaces the real path of a folder that the client knows by a link: the agent's own tools name
    /// the real one.
    fn as_the_client_writes(&self, path: PathBuf) -> PathBuf {
        if self.client.iter().any(|folder| path.starts_with(normal(folder))) {
            return path;
        }
        let renamed = self.client.iter().find_map(|folder| {
            let rest = path.strip_prefix(openclaw_files::canonical(folder).ok()?).ok()?;
            Some(normal(&folder.join(rest)))
        });
        renamed.unwrap_or(path)
    }
}

/// Removes `.` and `..`.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_client(client: Vec<PathBuf>) -> SessionFolders {
        SessionFolders { client, ..SessionFolders::default() }
    }

    #[test]
    fn a_path_outside_the_session_s_folders_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let more = tempfile::tempdir().unwrap();
        let folders = of_client(vec![folder.path().into(), more.path().into()]);
        let in_more = more.path().join("b.rs");
        for good in ["a.rs", "./x/../a.rs", "new/folder/a.rs", in_more.to_str().unwrap()] {
            assert!(folders.inside(good).is_ok(), "{good}");
        }
        let beside = format!("{}beside/a.rs", more.path().display());
        for bad in ["../a.rs", "/etc/passwd", "x/../../a.rs", &beside] {
            assert!(folders.inside(bad).is_err(), "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_outside_is_refused_also_if_its_target_is_missing() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let folders = of_client(vec![folder.path().into()]);
        std::fs::create_dir(folder.path().join("real")).unwrap();
        symlink("/etc", folder.path().join("link")).unwrap();
        symlink("/nowhere/new.txt", folder.path().join("dangling")).unwrap();
        symlink("real", folder.path().join("within")).unwrap();
        for bad in ["link/passwd", "link", "dangling", "dangling/x"] {
            assert!(folders.inside(bad).is_err(), "{bad}");
        }
        assert!(folders.inside("within/a.rs").is_ok());
        // A folder that is a link itself can be named by its real path, too.
        let linked = folder.path().join("within");
        let folders_by_link = of_client(vec![linked.clone()]);
        let real = openclaw_files::canonical(folder.path()).unwrap().join("real/a.rs");
        assert_eq!(folders_by_link.inside(real.to_str().unwrap()).unwrap(), linked.join("a.rs"));
        // `..` is removed before links are followed, and the client gets that path.
        assert_eq!(folders.inside("link/../a.rs").unwrap(), folder.path().join("a.rs"));
    }
}
