//! A helper process for the tests that uses a store: it performs one action, reports it on stdout,
//! and exits when its stdin or stdout is closed.

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use openclaw_sessions::{
    EntryKind, NewEntry, ReadFilter, SessionKey, SessionStore as _, SqliteOptions, SqliteStore,
};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        match arguments[..] {
            ["append", path, key, batches, size] => {
                append(path, key, batches.parse()?, size.parse()?).await
            }
            ["hang-in-transaction", path, key] => hang_in_transaction(path, key).await,
            ["hold-lease", path, key, ttl] => hold_lease(path, key, ttl.parse()?).await,
            ["read-then-write", path, key] => read_then_write(path, key).await,
            ["try-to-write", path, key] => try_to_write(path, key).await,
            _ => Err("wrong arguments".into()),
        }
    })
}

/// Prints the sequence number of the last entry of each batch once it is stored.
async fn append(path: &str, key: &str, batches: u64, size: usize) -> Outcome {
    // The machine is busy, and so are the other processes.
    let options = SqliteOptions { busy_timeout: Duration::from_secs(60) };
    let store = SqliteStore::open_with(path, options).await?.store;
    let key: SessionKey = key.parse()?;
    store.open(&key, "main").await?;
    let who = std::process::id();
    for batch in 0..batches {
        let entry = |index| {
            let body = json!({"who": who, "batch": batch, "index": index});
            NewEntry::new(EntryKind::Message, body).of_run(format!("{who}-{batch}"))
        };
        let numbers = store.append(&key, (0..size).map(entry).collect()).await?;
        say(&format!("{}", numbers.last().copied().unwrap_or_default()))?;
    }
    Ok(())
}

/// Makes the changes of an append, and never commits.
async fn hang_in_transaction(path: &str, key: &str) -> Outcome {
    let mut connection = SqliteConnectOptions::new().filename(path).connect().await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("UPDATE sessions SET last_seq = last_seq + 1 WHERE key = ?")
        .bind(key)
        .execute(&mut *transaction)
        .await?;
    // Larger than the page cache, so that part of it is already in the log.
    sqlx::query(
        "INSERT INTO entries (session, seq, at, kind, body)
         SELECT id, last_seq, 0, 'message', '\"' || hex(zeroblob(8000000)) || '\"'
         FROM sessions WHERE key = ?",
    )
    .bind(key)
    .execute(&mut *transaction)
    .await?;
    say("in transaction")?;
    wait_for_end().await
}

async fn hold_lease(path: &str, key: &str, ttl: u64) -> Outcome {
    let store = SqliteStore::open(path).await?.store;
    let lease = store.lease(&key.parse()?, "other process", Duration::from_millis(ttl)).await?;
    say("held")?;
    wait_for_end().await?;
    lease.release().await;
    Ok(())
}

/// Prints the number of entries, or the error.
async fn read_then_write(path: &str, key: &str) -> Outcome {
    let read = async {
        let store = SqliteStore::open(path).await?.store;
        let key = key.parse()?;
        store.get(&key).await?.ok_or("no session")?;
        let entries = store.read(&key, ReadFilter::all()).await?;
        let error = store.append(&key, vec![NewEntry::new(EntryKind::Note, json!(1))]).await;
        Ok::<_, Box<dyn Error>>((entries.len(), error.err()))
    };
    match read.await {
        Ok((entries, Some(error))) => say(&format!("{entries} read; {error}")),
        Ok((entries, None)) => say(&format!("{entries} read, and one written")),
        Err(error) => say(&error.to_string()),
    }
}

/// Prints the result.
async fn try_to_write(path: &str, key: &str) -> Outcome {
    let written = async {
        let store = SqliteStore::open(path).await?.store;
        store.open(&key.parse()?, "main").await?;
        Ok::<(), Box<dyn Error>>(())
    };
    match written.await {
        Ok(()) => say("written"),
        Err(error) => say(&error.to_string()),
    }
}

fn say(line: &str) -> Outcome {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}

async fn wait_for_end() -> Outcome {
    tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}
