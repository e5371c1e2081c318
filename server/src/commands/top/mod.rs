//! `top`: a screen that shows how a server is doing, once a second.
//!
//! One task asks the server, one thread reads keys, and the screen is drawn when either has something
//! new; so a slow server never makes the screen deaf.

mod gauge;
mod screen;

use std::time::Duration;

use clap::Args;
use punctual_client::{Client, Error};
use punctual_wire::Span;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Terminal, backend::TestBackend};
use tokio::sync::mpsc;

use self::gauge::{Sample, View};
use super::Session;
use super::failure::{Failure, help};

/// How often the keyboard thread looks whether it is still wanted.
const KEY_WAIT: Duration = Duration::from_millis(250);

/// The size of a frame that nobody's terminal limits.
const FRAME: (u16, u16) = (80, 24);

/// Watch a server live: rates, lateness, queues, what is due next.
///
/// Press q to quit, s to sort the queues by another column.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual top
  punctual top --once          one frame as text
  punctual top --once --json   the numbers of the server"))]
pub struct TopArgs {
    /// Print one frame as text, and exit.
    #[arg(long)]
    once: bool,
    /// How often to refresh.
    #[arg(long, value_name = "SPAN", default_value = "1s")]
    every: Span,
}

/// Shows the screen.
pub async fn run(args: TopArgs, url: &str, mut session: Session) -> Result<(), Failure> {
    if session.output.json {
        return session.output.json(&session.client.stats().await?);
    }
    let every = args.every.as_duration().max(Duration::from_millis(100));
    let mut view = View::new(url);
    view.show(Sample::take(&session.client).await?);
    if args.once {
        tokio::time::sleep(every).await;
        view.show(Sample::take(&session.client).await?);
        return session.output.line(frame(&view, FRAME));
    }
    let mut terminal =
        ratatui::try_init().map_err(|error| Failure::local("cannot draw on this terminal: use --once", error))?;
    let result = watch(&mut terminal, view, session.client, every).await;
    ratatui::restore();
    result
}

/// Draws until somebody quits.
async fn watch(terminal: &mut DefaultTerminal, mut view: View, client: Client, every: Duration) -> Result<(), Failure> {
    let (sender, mut samples) = mpsc::channel(1);
    let sampler = tokio::spawn(async move {
        loop {
            tokio::time::sleep(every).await;
            if sender.send(Sample::take(&client).await).await.is_err() {
                break;
            }
        }
    });
    let mut keys = keys();
    loop {
        terminal.draw(|frame| screen::draw(frame, &view)).map_err(Failure::from)?;
        tokio::select! {
            sample = samples.recv() => match sample {
                Some(Ok(sample)) => view.show(sample),
                Some(Err(error)) => view.trouble = Some(trouble(&error)),
                None => break,
            },
            key = keys.recv() => match key {
                Some(Press::Sort) => view.sort = view.sort.next(),
                Some(Press::Redraw) => {}
                Some(Press::Quit) | None => break,
            },
        }
    }
    sampler.abort();
    Ok(())
}

/// Why the numbers are old, in as few words as the first line has room for.
fn trouble(error: &Error) -> String {
    match error {
        Error::Unreachable { .. } | Error::Timeout { .. } | Error::NoServer { .. } => {
            "no answer: the numbers are old".into()
        }
        other => other.to_string(),
    }
}

/// What a key stands for.
enum Press {
    Quit,
    Sort,
    Redraw,
}

/// Reads the keyboard on a thread of its own, because reading blocks. In raw mode Ctrl-C is a key like any other.
fn keys() -> mpsc::UnboundedReceiver<Press> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(KEY_WAIT) {
                Ok(false) => continue,
                Ok(true) => {}
                Err(_) => break,
            }
            let Ok(event) = event::read() else { break };
            let key = match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => Press::Quit,
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Press::Quit,
                    KeyCode::Char('s') => Press::Sort,
                    _ => continue,
                },
                Event::Resize(..) => Press::Redraw,
                _ => continue,
            };
            if sender.send(key).is_err() {
                break;
            }
        }
    });
    receiver
}

/// One frame as text.
fn frame(view: &View, (width, height): (u16, u16)) -> String {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let Ok(_) = terminal.draw(|frame| screen::draw(frame, view));
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(usize::from(width));
    let lines = lines.map(|cells| cells.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
