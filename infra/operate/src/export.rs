//! `client export ID`: writes all that is stored about a client to a file, whole or not at all.
//!
//! 1. Checks that the file can be made, and that the client is known. 2. Asks. 3. Writes the line of the audit trail.
//! 4. Reads. 5. Writes a file without a name, and gives it its name, unless the name is taken by then.
//!
//! The line comes first, so that no export leaves none. A failure after it says so.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use domain::audit::{AuditAction, AuditDetail};
use domain::id::{ClientId, CoachId};
use domain::time::Timestamp;
use rustix::fs::{AtFlags, CWD, linkat};
use serde::Serialize;
use store::audit::AuditContext;
use store::client::StoredClient;
use store::operating::export::{ExportedTables, Exporter};
use store::workspace::Workspaces;

use crate::act::RecordAct;
use crate::actor::actor;
use crate::client::known;
use crate::connection::Operator;
use crate::failure::Failure;
use crate::options::ClientCommand;
use crate::output::Answer;

/// The mode of the file.
const OWNER_ALONE: u32 = 0o600;

/// The content of the file.
#[derive(Serialize)]
struct Export<'a> {
    client_id: &'a ClientId,
    coach_id: &'a CoachId,
    exported_at: Timestamp,
    tables: ExportedTables,
}

/// A file that is to be made.
struct NewFile {
    directory: PathBuf,
    path: PathBuf,
}

/// Exports a client.
pub(crate) async fn export(operator: &Operator, command: &ClientCommand) -> Result<Answer, Failure> {
    let ClientCommand::Export { id, to, consent } = command;
    let file = NewFile::check(to)?;
    let client = known(operator, id).await?;
    let coach = &client.client.coach_id;
    let (vault, actor) = (operator.vault().await?, actor(operator).await?);
    let exporter = Exporter::new(&operator.env, &operator.db, &vault)?;
    consent.ask(&operator.stack, &format!(
        "writes all that is stored about client {id} of coach {coach} to {}, with a line in the coach's audit trail",
        to.display()
    ))?;
    // The client may have been erased while the operator thought.
    let client = known(operator, id).await?;
    let coach = &client.client.coach_id;
    let exported_at = operator.now();
    let context = AuditContext { coach, actor: &actor, now: exported_at };
    let detail = consent.detail(AuditDetail::default());
    let workspaces = Workspaces::new(&operator.env, &operator.db)?;
    workspaces.write_line(context, AuditAction::ClientExported, id.as_str(), detail).await?;
    write(&exporter, &client, exported_at, &file).await.map_err(|failure| Failure {
        error: format!("no file was written, but the audit trail has a line of the export: {failure}"),
        ..failure
    })?;
    RecordAct { action: AuditAction::ClientExported, target: id.as_str(), coach }.done()
}

/// Reads everything, and writes the file.
async fn write(
    exporter: &Exporter,
    client: &StoredClient,
    exported_at: Timestamp,
    file: &NewFile,
) -> Result<(), Failure> {
    let (client_id, coach_id) = (&client.client.id, &client.client.coach_id);
    file.write(&Export { client_id, coach_id, exported_at, tables: exporter.read(client).await? })
}

impl NewFile {
    /// Checks that a path is free, and that its directory takes files. A check leaves nothing behind.
    fn check(to: &Path) -> Result<Self, Failure> {
        let name = to.file_name().filter(|name| *name != "-");
        let name = name.ok_or_else(|| Failure::refused("--to must end with the name of a file"))?;
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = parent.unwrap_or_else(|| Path::new(".")).to_owned();
        let path = directory.join(name);
        if path.symlink_metadata().is_ok() {
            return Err(Failure::refused(format!("{} exists, give another name", to.display())));
        }
        let trial = tempfile::tempfile_in(&directory);
        trial.map_err(|error| Failure::refused(format!("{} takes no file: {error}", directory.display())))?;
        Ok(Self { directory, path })
    }

    /// Writes the file, readable by its owner alone, unless its name is taken by now.
    fn write(&self, content: &impl Serialize) -> Result<(), Failure> {
        let written = || -> io::Result<()> {
            // A file without a name is gone if the process is killed.
            let unnamed = tempfile::tempfile_in(&self.directory)?;
            unnamed.set_permissions(Permissions::from_mode(OWNER_ALONE))?;
            fill(&unnamed, content)?;
            match give_name(&unnamed, &self.path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => self.write_by_rename(content),
                given => given,
            }
        };
        written().map_err(|error| Failure::refused(format!("{}: {error}", self.path.display())))
    }

    /// Writes the file under another name first, where the file system gives no name to a file that has none. A kill
    /// leaves that other file, whose name says what it is.
    fn write_by_rename(&self, content: &impl Serialize) -> io::Result<()> {
        let file = tempfile::Builder::new().prefix(".operate-export-").tempfile_in(&self.directory)?;
        fill(file.as_file(), content)?;
        file.persist_noclobber(&self.path)?;
        Ok(())
    }
}

/// Gives a name to a file that has none, unless the name is taken.
fn give_name(unnamed: &File, path: &Path) -> io::Result<()> {
    let own = format!("/proc/self/fd/{}", unnamed.as_raw_fd());
    Ok(linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

fn fill(file: &File, content: &impl Serialize) -> io::Result<()> {
    let mut writer = BufWriter::new(file);
    serde_json::to_writer_pretty(&mut writer, content)?;
    writer.write_all(b"\n")?;
    writer.flush()?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;
    use crate::failure::Code;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_written_whole_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("c1.json");
        let file = NewFile::check(&to).unwrap();
        assert!(names(directory.path()).is_empty(), "the check leaves nothing");
        file.write(&json!({ "client_id": "c1" })).unwrap();
        assert_eq!(names(directory.path()), ["c1.json"]);
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
        let read: Value = serde_json::from_slice(&fs::read(&to).unwrap()).unwrap();
        assert_eq!(read, json!({ "client_id": "c1" }));
    }

    #[test]
    fn an_existing_file_stays_as_it_is_and_a_directory_must_take_files() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("c1.json");
        let file = NewFile::check(&to).unwrap();
        fs::write(&to, "mine").unwrap();
        for path in
            ["-".into(), to.clone(), directory.path().to_owned(), directory.path().join("none/c1.json"), "..".into()]
        {
            assert_eq!(NewFile::check(&path).err().map(|failure| failure.code), Some(Code::Refused), "{path:?}");
        }
        assert_eq!(file.write(&json!({})).unwrap_err().code, Code::Refused, "the name was taken meanwhile");
        assert_eq!((fs::read_to_string(&to).unwrap().as_str(), names(directory.path()).len()), ("mine", 1));
    }

    #[test]
    fn a_file_system_without_unnamed_files_gets_a_whole_file_too() {
        let directory = tempfile::tempdir().unwrap();
        let file = NewFile::check(&directory.path().join("c1.json")).unwrap();
        file.write_by_rename(&json!({ "client_id": "c1" })).unwrap();
        assert_eq!(names(directory.path()), ["c1.json"]);
        assert_eq!(fs::metadata(&file.path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(file.write_by_rename(&json!({})).unwrap_err().kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_failed_write_leaves_no_file() {
        struct Unwritable;
        impl Serialize for Unwritable {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("broken"))
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let file = NewFile::check(&directory.path().join("c1.json")).unwrap();
        assert!(file.write(&Unwritable).is_err());
        assert!(names(directory.path()).is_empty());
    }
}
