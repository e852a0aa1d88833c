//! The stdio transport: lines in, lines out, on one thread, with one write for all requests that were
//! read together.

mod spoil;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::engine::{Engine, Listener, Outbox, lock};
use crate::script::{Junk, Script, StdoutScript};

/// Larger messages, in bytes, are not copied into the buffer.
const LARGE: usize = 64 * 1024;

/// Serves until stdin ends.
pub(crate) fn serve(script: Script) -> std::io::Result<()> {
    let grandchild = crate::process::begin(&script)?;
    let stays = script.process.ignore_stdin_close;
    let pipe = Arc::new(Pipe::new(script.stdout.clone())?);
    let engine = Engine::new(script, grandchild)?;
    let session = engine.new_session();
    let out: Arc<dyn Outbox> = Arc::clone(&pipe) as _;
    session.listen(Listener { out: Arc::clone(&out), subscription: None });

    let mut input = BufReader::with_capacity(LARGE, raw_stdin()?);
    let mut line = Vec::new();
    loop {
        line.clear();
        // Responses are held while another line is buffered, and flushed before a read that may block.
        if input.buffer().contains(&b'\n') {
            pipe.hold();
        } else {
            pipe.flush();
        }
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        engine.record(&line);
        pipe.hold();
        engine.handle(&session, &line, &out);
    }
    if stays {
        loop {
            thread::park();
        }
    }
    Ok(())
}

/// stdin without the buffer of the standard library.
fn raw_stdin() -> std::io::Result<File> {
    #[cfg(unix)]
    use std::os::fd::AsFd;
    #[cfg(unix)]
    return Ok(std::io::stdin().as_fd().try_clone_to_owned()?.into());
    #[cfg(windows)]
    use std::os::windows::io::AsHandle;
    #[cfg(windows)]
    return Ok(std::io::stdin().as_handle().try_clone_to_owned()?.into());
}

/// stdout without the line buffer of the standard library.
fn raw_stdout() -> std::io::Result<File> {
    #[cfg(unix)]
    use std::os::fd::AsFd;
    #[cfg(unix)]
    return Ok(std::io::stdout().as_fd().try_clone_to_owned()?.into());
    #[cfg(windows)]
    use std::os::windows::io::AsHandle;
    #[cfg(windows)]
    return Ok(std::io::stdout().as_handle().try_clone_to_owned()?.into());
}

/// stdout.
struct Pipe {
    script: StdoutScript,
    plain: bool,
    state: Mutex<State>,
}

struct State {
    file: File,
    buffer: Vec<u8>,
    /// The reader will flush; `send` need not.
    held: bool,
    begun: bool,
}

impl Pipe {
    fn new(script: StdoutScript) -> std::io::Result<Self> {
        let file = raw_stdout()?;
        let state = State { file, buffer: Vec::with_capacity(LARGE), held: false, begun: false };
        Ok(Self { plain: script.is_plain(), script, state: Mutex::new(state) })
    }

    fn hold(&self) {
        lock(&self.state).held = true;
    }
}

impl Outbox for Pipe {
    fn send(&self, mut message: Vec<u8>) {
        if let Some(text) = &self.script.spoiled_with {
            message = spoil::spoiled(&message, text);
        }
        let mut state = lock(&self.state);
        if !self.plain {
            state.junk(&self.script);
        }
        if self.script.crlf {
            message.push(b'\r');
        }
        message.push(b'\n');
        if let Some(ms) = self.script.split_ms {
            let (first, second) = message.split_at(message.len() / 2);
            state.write(first);
            thread::sleep(Duration::from_millis(ms));
            state.write(second);
        } else if message.len() > LARGE {
            state.write(&message);
        } else {
            state.buffer.extend_from_slice(&message);
            if !state.held {
                state.write(b"");
            }
        }
    }

    fn flush(&self) -> bool {
        let mut state = lock(&self.state);
        state.held = false;
        state.write(b"");
        true
    }
}

impl State {
    /// Writes the buffer and these bytes. Errors are ignored: if the client has exited, stdin reaches
    /// EOF.
    fn write(&mut self, bytes: &[u8]) {
        if !self.buffer.is_empty() {
            let _ = self.file.write_all(&self.buffer);
            self.buffer.clear();
        }
        if !bytes.is_empty() {
            let _ = self.file.write_all(bytes);
        }
    }

    fn junk(&mut self, script: &StdoutScript) {
        let before = if self.begun { &[] } else { script.before.as_slice() };
        self.begun = true;
        for junk in before.iter().chain(&script.between) {
            match junk {
                Junk::Line(text) => self.write(format!("{text}\n").as_bytes()),
                Junk::Blank => self.write(b"\n"),
                Junk::NonUtf8 => self.write(b"\xff\xfe caf\xe9 \x80\n"),
                Junk::Partial(text) => self.write(text.as_bytes()),
                Junk::LineOfMb(megabytes) => {
                    let megabyte = vec![b'x'; 1 << 20];
                    for _ in 0..*megabytes {
                        self.write(&megabyte);
                    }
                    self.write(b"\n");
                }
            }
        }
    }
}
